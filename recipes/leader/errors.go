package leader

import (
	"errors"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

var (
	// ErrClosed is returned by the methods of a closed latch or selector. It is the cause of the end of a leadership's
	// context after Close. In Java: EOFException, IllegalStateException.
	ErrClosed error = telemetry.Closed("leader: closed")
	// ErrStarted is returned by a second Start.
	ErrStarted = errors.New("leader: already started")
	// ErrLeadershipLost is the cause of the end of a leadership's context when the connection or the node was lost. Fenced
	// writes return it. It matches locks.ErrLockLost.
	ErrLeadershipLost error = lostLeadership{}
	// ErrInterrupted is the cause of the end of a leadership's context after InterruptLeadership. In Java:
	// CancelLeadershipException, InterruptedException.
	ErrInterrupted = errors.New("leader: interrupted")
)

// lostLeadership is the type of ErrLeadershipLost.
type lostLeadership struct{}

func (lostLeadership) Error() string { return "leader: leadership lost" }

func (lostLeadership) Unwrap() error { return waitqueue.ErrLost }
