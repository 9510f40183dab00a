// Package run runs a command while a hold lasts: a lock, a lease or a leadership. It is the supervisor of a guard.
package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/gocurator/curator/cmd/curator/internal/guard"
	"github.com/gocurator/curator/framework"
)

// The defaults of a [Config].
const (
	DefaultGrace  = 2 * time.Second
	DefaultMargin = time.Second
)

var (
	// ErrTooShort means that the session timeout leaves too little time to stop a command.
	ErrTooShort = errors.New("the session timeout is too short")
	// ErrLost means that the hold had ended before the command was started.
	ErrLost = errors.New("lost before the command was started")
	// ErrNotStarted means that the command cannot be started.
	ErrNotStarted = errors.New("the command was not started")
)

// Hold is what is held.
type Hold struct {
	Path    string
	Token   int64
	Session int64           // the owner of the node
	Context context.Context // ends with the hold
}

// Config says what to run, and how to stop it.
type Config struct {
	Path      string // of the program
	Args, Env []string
	// Grace is the time from SIGTERM to SIGKILL, Margin that from SIGKILL to the earliest end of the session.
	Grace, Margin time.Duration
	OnLost        guard.OnLost
	Cgroup        bool // where it is delegated
	// Signals are forwarded to the command.
	Signals <-chan os.Signal
	// Event is called with each event, one after the other.
	Event func(Event)
}

// Event is a line of --json.
type Event struct {
	Time           time.Time `json:"time"`
	Event          string    `json:"event"`
	Path           string    `json:"path,omitempty"`
	Token          int64     `json:"token,omitempty"`
	Session        string    `json:"session,omitempty"`
	SessionTimeout int64     `json:"sessionTimeoutMs,omitempty"`
	PID            int       `json:"pid,omitempty"`
	Signal         string    `json:"signal,omitempty"`
	Address        string    `json:"address,omitempty"`
	Reason         string    `json:"reason,omitempty"`
	Code           *int      `json:"code,omitempty"`
	Margin         *int64    `json:"marginMs,omitempty"`
	// SinceLoss is there in place of Margin when the hold had ended before the command.
	SinceLoss *int64 `json:"sinceLossMs,omitempty"`
}

// Outcome is how a command has ended. Nothing of it is left.
type Outcome struct {
	Code   int    // the exit code of the command
	Lost   bool   // it was stopped because the hold was lost, or was about to be
	Reason string // why it was stopped, "" if it ended by itself
	// Margin is the time from the end of the last process to the earliest end of the session.
	Margin time.Duration
	// Taken means that the hold had ended before the command: the node was deleted, or the session has ended. Another may
	// have held it since, whatever Margin is. SinceLoss is the time from the notice of it to the end of the last process.
	Taken     bool
	SinceLoss time.Duration
}

// The reasons of the end of a command whose hold was taken.
const (
	NodeDeleted  = "the node is deleted"
	SessionEnded = "the session has ended"
)

// MinimumTimeout returns the shortest session timeout for these times. The proof of a session is older than a third of
// the timeout now and then, without a fault.
func MinimumTimeout(grace, margin time.Duration) time.Duration {
	const most = math.MaxInt64 / 4
	return 2 * (min(grace, most) + min(margin, most))
}

// Check returns an error that wraps ErrTooShort if a session timeout leaves too little time to stop a command.
func Check(timeout, grace, margin time.Duration) error {
	least := MinimumTimeout(grace, margin)
	if timeout < least {
		return fmt.Errorf("%w: %v, and a grace of %v with a margin of %v needs %v",
			ErrTooShort, timeout, grace, margin, least)
	}
	return nil
}

// supervisor is one run of a command.
type supervisor struct {
	Config
	client    *framework.Client
	hold      Hold
	session   *framework.Session
	process   *guard.Process
	pid       int        // of the command
	end       guard.Time // the earliest end of the session, by the newest proof
	destroyAt guard.Time // when a guard that has not done its work is not waited for
	exited    *int       // the exit code of the command, if the guard has reported it
	lost      bool       // the guard stops the command because the session is near its end
	lostAt    guard.Time // when the end of the hold was noticed; 0 before
	signals   []int      // those that the guard has not taken yet
}

// Command runs a command until it ends or the hold is lost, and returns when nothing of it is left.
func Command(client *framework.Client, hold Hold, conf Config) (Outcome, error) {
	timeout := client.SessionTimeout()
	if err := Check(timeout, conf.Grace, conf.Margin); err != nil { // the session may be another one by now
		return Outcome{}, err
	}
	s := &supervisor{Config: conf, client: client, hold: hold, session: client.Session()}
	if s.session.ID() != hold.Session || !s.prove() {
		return Outcome{}, ErrLost
	}
	timer, err := guard.NewTimer()
	if err != nil {
		return Outcome{}, err
	}
	defer timer.Stop()
	s.process, err = guard.Start(guard.Config{
		Path: conf.Path, Args: conf.Args, Env: conf.Env, OnLost: conf.OnLost, Grace: conf.Grace, Margin: conf.Margin,
		End: s.end,
	}, conf.Cgroup)
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	defer func() { s.process.Close(s.pid) }()
	return s.supervise(timeout, timer)
}

func (s *supervisor) supervise(timeout time.Duration, timer *guard.Timer) (Outcome, error) {
	proofs := time.NewTicker(max(timeout/50, 10*time.Millisecond))
	defer proofs.Stop()
	ended := s.hold.Context.Done() // nil when that is known
	for {
		timer.Set(s.destroyAt)
		select {
		case r, ok := <-s.process.Reports:
			switch {
			case !ok && s.pid == 0:
				s.process.Destroy(0) // it may have started the command, and was killed before it said so
				return Outcome{}, fmt.Errorf("%w: the guard has ended", ErrNotStarted)
			case !ok:
				return s.destroy("the guard has ended", false), nil
			case r.Event == guard.NotStarted && r.Lost:
				return Outcome{}, fmt.Errorf("%w: %s", ErrLost, r.Error)
			case r.Event == guard.NotStarted:
				return Outcome{}, fmt.Errorf("%w: %s", ErrNotStarted, r.Error)
			case r.Event == guard.Gone:
				return s.outcome(r), nil
			}
			s.report(r)
		case <-proofs.C:
			if s.prove() {
				s.process.Send(guard.Order{End: s.end})
			}
			s.passSignals()
		case sig := <-s.Signals:
			s.signal(sig)
		case sig := <-s.process.Continued:
			s.signal(sig)
		case <-ended:
			// Another one may have it already: the node was deleted, or the server has ended the session early.
			ended = nil
			s.lostAt = guard.Now()
			s.process.Send(guard.Order{Kill: true})
			s.destroyAt = min(s.destroyAt, s.lostAt.Add(s.Margin/4))
		case <-timer.C:
			if guard.Now() >= s.destroyAt {
				return s.destroy("the guard did not stop it in time", true), nil
			}
		}
	}
}

// signal passes a signal on.
func (s *supervisor) signal(sig os.Signal) {
	if n, ok := sig.(syscall.Signal); ok {
		s.Event(Event{Event: "signal", Signal: sig.String()})
		s.signals = append(s.signals, int(n))
		s.passSignals()
	}
}

// passSignals sends the signals to the guard. One that is stopped goes on. When its pipe is full, it gets them later.
func (s *supervisor) passSignals() {
	for len(s.signals) > 0 {
		s.process.Continue()
		if !s.process.Send(guard.Order{Signal: s.signals[0]}) {
			return
		}
		s.signals = s.signals[1:]
	}
}

// prove reads the clock of the session. It reports whether there is a newer proof that the session of the hold lives.
func (s *supervisor) prove() bool {
	now := guard.Now() // before the other clock: if this process stands still in between, the end is early
	health := s.client.Health()
	// The hold ends before another session begins, so the time left is not that of another one.
	if health.SessionID != s.hold.Session || health.SessionLeft <= 0 || s.hold.Context.Err() != nil {
		return false
	}
	end := now.Add(health.SessionLeft)
	if end <= s.end {
		return false
	}
	s.end = end
	s.destroyAt = end.Add(-s.Margin * 3 / 4)
	return true
}

// report passes what the guard reports on.
func (s *supervisor) report(r guard.Report) {
	s.lost = s.lost || r.Lost
	e := Event{Event: r.Event, Reason: r.Reason}
	switch r.Event {
	case guard.Started:
		s.pid = r.PID
		e.PID = r.PID
	case guard.Exited:
		s.exited = &r.Code
		e.Code = s.exited
	}
	s.Event(e)
}

// destroy kills what a guard has left, and the guard. If this process stood still while the guard has done its work,
// the report of that is still in the pipe.
func (s *supervisor) destroy(reason string, lost bool) Outcome {
	code := s.process.Destroy(s.pid)
	at := guard.Now()
	for r := range s.process.Reports {
		if r.Event == guard.Gone {
			return s.outcome(r)
		}
		s.report(r)
	}
	switch {
	case s.exited != nil:
		code = *s.exited
	case code < 0: // the guard has reaped it, and did not say so any more
		code = 128 + int(syscall.SIGKILL)
	}
	return s.outcome(guard.Report{Code: code, Lost: s.lost || lost && s.exited == nil, Reason: reason, At: at})
}

// outcome returns the outcome of the last report.
func (s *supervisor) outcome(r guard.Report) Outcome {
	o := Outcome{Code: r.Code, Lost: r.Lost, Reason: r.Reason, Margin: s.end.Sub(r.At)}
	// A supervisor that stood still may notice the end of the hold long after the guard has done its work.
	o.Taken = s.lostAt != 0 && s.lostAt <= r.At
	left := o.Margin.Milliseconds()
	e := Event{Event: guard.Gone, Code: &o.Code, Margin: &left}
	if o.Taken {
		o.SinceLoss = r.At.Sub(s.lostAt)
		since := o.SinceLoss.Milliseconds()
		e.Margin, e.SinceLoss = nil, &since
		if o.Lost {
			o.Reason = s.lossReason()
		}
	}
	e.Reason = o.Reason
	s.Event(e)
	return o
}

// lossTimeout bounds the question to the servers why a hold was lost.
const lossTimeout = 5 * time.Second

// lossReason returns why the hold was lost. The event of the deletion may come before the end of the session, which has
// deleted the node: a read in that session finds out. Nothing of the command is left, so it may take its time.
func (s *supervisor) lossReason() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.hold.Context), lossTimeout)
	defer cancel()
	var err error
	if s.session.Context().Err() == nil {
		_, err = s.client.CheckExists().ForPath(ctx, s.hold.Path)
	}
	switch {
	case s.session.Context().Err() != nil:
		return SessionEnded
	case err != nil:
		return guard.HoldOver // no server says which
	}
	return NodeDeleted
}
