package framework

import (
	"errors"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
)

// Errors of the client itself. Errors of the server are the zk.Err… of go-zookeeper.
var (
	// ErrClosed is returned by, and handed to the callbacks of, operations of a closed client. In Java:
	// CuratorClosedException. The ErrClosed of a recipe matches it.
	ErrClosed = errtext.ErrClosed
	// ErrNotStarted is returned by operations of a client that is not started. The ErrNotStarted of a recipe
	// matches it.
	ErrNotStarted = errtext.ErrNotStarted
	// ErrStarted is returned by a second Start. The ErrStarted of a recipe matches it.
	ErrStarted = errtext.ErrStarted
	// ErrView is returned by Start and Close of a view: its client is started and closed instead.
	ErrView = errors.New("curator: cannot start or close a view; use its client")
	// ErrCloseTimeout is returned by Close when a callback is still running after the time for closing.
	ErrCloseTimeout = errors.New("curator: callbacks are still running")
	// ErrSessionLost is the cause of the end of a [Session]'s context.
	ErrSessionLost = errors.New("curator: session lost")
	// ErrSessionFailed is returned by [Client.CallInSession] when the session was lost on the way.
	ErrSessionFailed = errors.New("curator: session failed")
	// ErrRequestTooLarge is wrapped by the error of an operation that is larger than [WithMaxBuffer] allows.
	ErrRequestTooLarge = builders.ErrRequestTooLarge
	// ErrReplyTooLarge is wrapped by the error of an operation whose answer is larger than [WithMaxReply] allows. A write
	// with this error has taken effect.
	ErrReplyTooLarge = builders.ErrReplyTooLarge
	// ErrNoChroot is wrapped by the error of an operation that fails because the chroot of the connect string does not
	// exist; the text has its path. It matches zk.ErrNoNode. A client creates no chroot. Transactions keep
	// zk.ErrNoNode, and so do reads and writes below the chroot that create nothing.
	ErrNoChroot = builders.ErrNoChroot
	// ErrTooManyPending is wrapped by the error of a background operation that is refused: see [WithMaxPending].
	ErrTooManyPending = exec.ErrTooManyPending
	// ErrCertificateNotSent is wrapped by the error of a connection that failed when a server asked for a certificate and
	// did not get the client's: see [WithRequiredClientCertificate].
	ErrCertificateNotSent = errors.New("the client's certificate is not sent")
	// ErrBadArguments is wrapped by errors about invalid options and arguments.
	ErrBadArguments = builders.ErrBadArguments
)

// Errors of the protocol that go-zookeeper has no value for.
var (
	// ErrConnectionLoss means that there was no answer: the operation may or may not have taken effect. It matches
	// zk.ErrConnectionClosed too.
	ErrConnectionLoss = jute.ErrConnectionLoss
	// ErrNotSent is a connection loss before anything was sent: the operation has not taken effect.
	ErrNotSent = exec.ErrNotSent
	// ErrUncertain means that a write may or may not have taken effect. Either the answer to a fenced write was lost, and
	// the error matches ErrConnectionLoss too: see [Client.Fenced]. Or the answer to a delete was lost, and the node that
	// exists now may be another one: the error matches ErrConnectionLoss then too. Or the context of the caller has ended
	// after any write was sent, and the error matches that of the context too.
	ErrUncertain = builders.ErrUncertain
	// ErrOperationTimeout means the same as ErrConnectionLoss.
	ErrOperationTimeout = jute.ErrOperationTimeout
	// ErrThrottledOp means that the server has too much to do, and did not begin with the operation. Policies retry it.
	ErrThrottledOp = jute.ErrThrottledOp
	// ErrUnimplemented means that the server does not support the operation, or has it disabled. It is also the error of a
	// kind of request that is newer than the first protocol, such as addWatch, multiRead or createContainer, after
	// servers or a proxy between have ended some connections in a row at it, instead of an answer: the client does not
	// send such requests for a second, then for longer, up to five minutes, and other requests have the connection.
	ErrUnimplemented = jute.ErrUnimplemented
	// ErrNotReadOnly is the answer to a write of a server without a quorum.
	ErrNotReadOnly = jute.ErrNotReadOnly
	// ErrEphemeralOnLocalSession is the answer to the create of an ephemeral node in a session that one server alone
	// knows: the servers have localSessionsEnabled without localSessionsUpgradingEnabled.
	ErrEphemeralOnLocalSession = jute.ErrEphemeralOnLocalSession
	// ErrLoginRequired means that a server serves nobody without a login that it knows: see [WithSASL]. The error matches
	// zk.ErrAuthFailed too.
	ErrLoginRequired = jute.ErrSessionClosedRequireSASL
	// ErrNoWatcher means that there is no such watch to remove.
	ErrNoWatcher = jute.ErrNoWatcher
	// ErrQuotaExceeded means that a quota of the path is used up.
	ErrQuotaExceeded = jute.ErrQuotaExceeded
	// ErrDataInconsistency is wrapped by the error about data that does not decompress.
	ErrDataInconsistency = jute.ErrDataInconsistency
	// ErrMarshalling means that client or server could not decode the other's bytes.
	ErrMarshalling = jute.ErrMarshalling
)

// MayHaveTakenEffect reports whether a write that has failed with err may have taken effect, now or later: its answer
// was lost, or did not come in time. After true read the node, and decide. False is certain: nothing was written, or,
// of an operation of several requests, as a create with its parents, nothing by the last of them. After a retry it
// returns true, whatever the error is, unless no attempt was sent: the NodeExists of a create may be about the node of
// its first attempt. err is that of a write of a client, a Value, a SharedValue or a counter, perhaps wrapped. For nil
// it returns false.
func MayHaveTakenEffect(err error) bool {
	var op *OpError
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrUncertain), errors.Is(err, ErrReplyTooLarge):
		return true
	case errors.Is(err, ErrNotSent):
		return false
	case errors.As(err, &op) && op.Attempts > 1:
		return true
	}
	// An answer that does not decode is no answer. A canceled context has ErrUncertain if its write was sent.
	return jute.IsOpen(err) || errors.Is(err, ErrMarshalling) || op != nil && errors.Is(err, ErrClosed)
}

// OpError reports which operation on which path failed, and why.
type OpError = builders.OpError
