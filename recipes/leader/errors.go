package leader

import "errors"

var (
	// ErrClosed is returned by what a latch or selector cannot do once it is closed. In Java: EOFException,
	// IllegalStateException.
	ErrClosed = errors.New("leader: closed")
	// ErrStarted is returned by a second Start.
	ErrStarted = errors.New("leader: already started")
	// ErrLeadershipLost is the cause of the end of a leadership's context when the connection or the node was lost.
	ErrLeadershipLost = errors.New("leader: leadership lost")
	// ErrInterrupted is the cause of the end of a leadership's context after InterruptLeadership. In Java:
	// CancelLeadershipException, InterruptedException.
	ErrInterrupted = errors.New("leader: interrupted")
)
