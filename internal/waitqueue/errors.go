package waitqueue

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// Package locks exports the first two, and only its users see their texts: a leader waits without a bound, and has an
// own error that wraps ErrLost.
var (
	// ErrNotAcquired is returned when the turn did not come within the wait.
	ErrNotAcquired = errors.New("locks: not acquired")
	// ErrLost is matched by the errors of a lock or a leadership that is lost.
	ErrLost = errors.New("locks: lock lost")
	// ErrNodeLost is returned when our node is gone or belongs to an ended session. The caller has to queue again.
	ErrNodeLost = errors.New("contender is gone")
)

// asNodeLost returns [ErrNodeLost] for the error of a list of a queue that was deleted, and other errors unchanged.
func asNodeLost(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return ErrNodeLost
	}
	return err
}
