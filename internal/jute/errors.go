package jute

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"
)

// ErrConnectionLoss means the connection went away before the answer came, so whether the server did what
// was asked is not known. It also matches [zk.ErrConnectionClosed], go-zookeeper's word for the same thing.
var ErrConnectionLoss error = connectionLoss{}

// ErrUncertain is the loss of the answer to a write that must not take effect twice, and is therefore not tried again.
var ErrUncertain = fmt.Errorf("%w, and the write may have taken effect", ErrConnectionLoss)

// The verdicts of a server that go-zookeeper has no error for.
var (
	ErrSystem                   = errors.New("curator: system error")
	ErrRuntimeInconsistency     = errors.New("curator: runtime inconsistency")
	ErrDataInconsistency        = errors.New("curator: data inconsistency")
	ErrMarshalling              = errors.New("curator: marshalling error")
	ErrUnimplemented            = errors.New("curator: operation not implemented")
	ErrOperationTimeout         = errors.New("curator: operation timed out")
	ErrUnknownSession           = errors.New("curator: unknown session")
	ErrNewConfigNoQuorum        = errors.New("curator: no quorum of the new configuration is connected")
	ErrReconfigInProgress       = errors.New("curator: another reconfiguration is in progress")
	ErrInvalidCallback          = errors.New("curator: invalid callback")
	ErrNotReadOnly              = errors.New("curator: server is read-only")
	ErrEphemeralOnLocalSession  = errors.New("curator: ephemeral node on a local session")
	ErrNoWatcher                = errors.New("curator: no such watcher")
	ErrRequestTimeout           = errors.New("curator: request timed out")
	ErrSessionClosedRequireSASL = errors.New("curator: session closed, server requires SASL authentication")
	ErrQuotaExceeded            = errors.New("curator: quota exceeded")
	ErrThrottledOp              = errors.New("curator: operation throttled")
)

// connectionLoss is a type of its own because errors.Is has to find two sentinels in one error.
type connectionLoss struct{}

func (connectionLoss) Error() string { return "curator: connection loss" }

// Is makes callers that know only go-zookeeper's vocabulary match.
func (connectionLoss) Is(target error) bool { return target == zk.ErrConnectionClosed }

// UnknownCode is the error of a code this package has no name for, as a newer server may send. Values are
// comparable, so errors.Is matches two of the same code.
type UnknownCode Code

// Error returns the number: the code has no text.
func (c UnknownCode) Error() string {
	return "curator: unknown error code " + strconv.Itoa(int(c))
}
