package leader

import (
	"errors"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
)

var (
	// ErrClosed is returned by the methods of a closed latch or selector. It is the cause of the end of a leadership's
	// context after Close. It matches framework.ErrClosed. In Java: EOFException, IllegalStateException.
	ErrClosed = errtext.Special(errtext.ErrClosed, "leader: closed")
	// ErrStarted is returned by a second Start. It matches framework.ErrStarted.
	ErrStarted = errtext.Special(errtext.ErrStarted, "leader: already started")
	// ErrLeadershipLost is the cause of the end of a leadership's context when the connection or the node was lost. Fenced
	// writes return it. It matches locks.ErrLockLost, and not zk.ErrNoNode: that is about the node to be written.
	ErrLeadershipLost = errtext.Special(waitqueue.ErrLost, "leader: leadership lost")
	// ErrInterrupted is the cause of the end of a leadership's context after InterruptLeadership. In Java:
	// CancelLeadershipException, InterruptedException.
	ErrInterrupted = errors.New("leader: interrupted")
)
