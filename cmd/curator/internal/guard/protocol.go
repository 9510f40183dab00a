// Package guard runs a command as its parent, and kills it with all of its descendants before a session can end.
//
// The guard is a process between the supervisor, which has the session, and the command. It gets the time at which the
// session ends at the earliest through a pipe, again after each proof of the session, and needs neither a network nor a
// scheduler that treats the supervisor well: when that time comes near, or the pipe ends, it kills. It is the parent of
// the command and a subreaper, so that no descendant gets away from it, and the command dies with it. The supervisor is
// a subreaper too, and kills what a guard has left that was killed itself.
//
// That is so on Linux. On other systems of Unix the guard kills the process group of the command, and descendants that
// leave the group get away.
package guard

import (
	"encoding/json"
	"errors"
	"io"
	"time"
)

// ErrUnsupported means that there is no guard for this operating system.
var ErrUnsupported = errors.New("curator runs no commands on this operating system")

// Time is a time of the clock of [Now], which all processes of a machine have in common and which does not stand still
// while the machine is suspended.
type Time time.Duration

// Add returns t+d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Config is what a guard gets first.
type Config struct {
	Path   string   `json:"path"` // the program
	Args   []string `json:"args"` // with its name
	Env    []string `json:"env"`
	OnLost OnLost   `json:"onLost"`
	// Grace is the time from SIGTERM to SIGKILL, Margin that from SIGKILL to the earliest end of the session.
	Grace  time.Duration `json:"grace"`
	Margin time.Duration `json:"margin"`
	Cgroup string        `json:"cgroup,omitempty"` // the directory of a cgroup for the command
	End    Time          `json:"end"`              // the earliest end of the session
}

// OnLost is what happens to the command when the end of the session comes near. The zero value is SIGTERM, and SIGKILL
// after the grace.
type OnLost struct {
	Kill bool     `json:"kill,omitempty"` // SIGKILL alone
	Run  []string `json:"run,omitempty"`  // a program and its arguments instead of SIGTERM
	// PIDVariable is the variable of the environment with which the program gets the id of the command.
	PIDVariable string `json:"pidVariable,omitempty"`
}

// Order is a message to a guard.
type Order struct {
	End    Time `json:"end,omitempty"`    // a later end of the session
	Signal int  `json:"signal,omitempty"` // a signal for the command
	Kill   bool `json:"kill,omitempty"`   // the session has ended: no grace
}

// Report is a message of a guard.
type Report struct {
	Event  string `json:"event"`
	PID    int    `json:"pid,omitempty"`
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
	Code   int    `json:"code"` // the exit code of the command
	// Lost reports that the command was stopped, or not started, because the session came near its end.
	Lost bool `json:"lost,omitempty"`
	At   Time `json:"at,omitempty"`
}

// The events of a guard.
const (
	Started     = "started"
	NotStarted  = "not started"
	Exited      = "exited"      // the command itself; descendants may be left
	Terminating = "terminating" // the command has got SIGTERM
	Killing     = "killing"     // everything gets SIGKILL
	Gone        = "gone"        // nothing is left
)

// HoldOver is the reason of an end without a grace.
const HoldOver = "the node is deleted, or the session has ended"

// StoppedAtSignal is the reason of the end of a command that was stopped when a signal came that ends programs.
const StoppedAtSignal = "it was stopped, and did not end within the grace after a signal"

func send(w io.Writer, message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n')) // shorter than PIPE_BUF, or the first one
	return err
}
