package builders

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
)

// OpError is the error of an operation on a path. errors.Is matches its cause: the zk.Err… of the server, an error of
// package framework such as ErrConnectionLoss, or the error of the context.
type OpError struct {
	// Op is ZooKeeper's name of the operation: "create", "getData".
	Op string
	// Path is the path that the caller gave.
	Path string
	// Attempts is the number of attempts; 0 if the arguments were invalid.
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

// ErrNoChroot is wrapped by the error of an operation that fails because the chroot of the connect string does not
// exist; the text has its path. It matches zk.ErrNoNode. A client creates no chroot. Transactions keep
// zk.ErrNoNode, and so do reads and writes below the chroot that create nothing.
var ErrNoChroot = errtext.Special(zk.ErrNoNode, "curator: the chroot does not exist")

// chrootError is the error of a missing chroot.
type chrootError struct{ chroot string }

func (e *chrootError) Error() string { return "the chroot " + e.chroot + " does not exist" }

// Unwrap returns ErrNoChroot, which matches zk.ErrNoNode.
func (e *chrootError) Unwrap() error { return ErrNoChroot }

// noNode returns the error of a read or a write of path that has not found it. A root is missing only as a chroot.
func (e *environment) noNode(path string) error {
	if chroot := e.Chroot(); path == "/" && chroot != "" {
		return &chrootError{chroot}
	}
	return zk.ErrNoNode
}

// ErrNotSent means that an operation has not taken effect: there was no connection to send it on. It matches connection
// loss, which alone does not say so.
var ErrNotSent = exec.ErrNotSent

// ErrRequestTooLarge is wrapped by the error of an operation that the server would not read: it would close the
// connection, and fail all other operations too.
var ErrRequestTooLarge = errors.New("request too large")

// ErrReplyTooLarge is wrapped by the error of an operation whose answer is larger than the client reads. The operation
// is not retried.
var ErrReplyTooLarge = wire.ErrReplyTooLarge

// ErrBadArguments is wrapped by errors about arguments that contradict each other.
var ErrBadArguments = errors.New("bad arguments")
