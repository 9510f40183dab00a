package builders

import (
	"errors"
	"fmt"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// OpError reports which operation on which path failed, and why. errors.Is matches what it wraps: the zk.Err… that
// the server answered, ErrConnectionLoss and the like of package framework, or the error of the context.
type OpError struct {
	// Op is the operation in ZooKeeper's words: "create", "getData".
	Op string
	// Path is the path as it was given.
	Path string
	// Attempts is how many times it was tried; 0 if the arguments were bad.
	Attempts int
	Err      error
}

// Error returns the operation, the path and the cause, with the prefix of this library alone: "curator: create /a/b:
// node does not exist".
func (e *OpError) Error() string {
	msg := "curator: " + e.Op
	if e.Path != "" {
		msg += " " + e.Path
	}
	if e.Attempts > 1 {
		msg += fmt.Sprintf(" (%d attempts)", e.Attempts)
	}
	return msg + ": " + errtext.Cause(e.Err, "curator")
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// ErrorType returns a short name of the cause from a closed set, for metrics: Java's name of the code ("NONODE",
// "CONNECTIONLOSS"), "CLOSED", "canceled", "deadline_exceeded" or "_OTHER".
func (e *OpError) ErrorType() string {
	return telemetry.ErrorType(e.Err)
}

// ErrNotSent says that an operation has not taken effect, because there was no connection to send it on. It matches the
// connection loss that it is, which alone leaves that open.
var ErrNotSent = exec.ErrNotSent

// ErrRequestTooLarge is wrapped by the error of an operation that the server would not read but hang up on, and all
// other operations with it.
var ErrRequestTooLarge = errors.New("request too large")

// ErrReplyTooLarge is wrapped by the error of an operation whose answer is larger than the client reads. It is not
// tried again.
var ErrReplyTooLarge = wire.ErrReplyTooLarge

// ErrBadArguments is wrapped by errors about arguments that make no sense together.
var ErrBadArguments = errors.New("bad arguments")
