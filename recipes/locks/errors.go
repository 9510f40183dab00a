package locks

import (
	"errors"
	"fmt"

	"github.com/gocurator/curator/internal/waitqueue"
)

var (
	// ErrNotAcquired is returned by TryAcquire when others held the lock for the whole wait.
	ErrNotAcquired = waitqueue.ErrNotAcquired
	// ErrLockLost is the cause of the end of a [Hold]'s context when the session ended or the node was deleted. [Do]
	// returns it if that happened while the function ran. Acquire returns it to an owner that has lost the lock, and
	// fenced writes return it. leader.ErrLeadershipLost matches it.
	ErrLockLost = waitqueue.ErrLost
	// ErrReleased is the cause of the end of a [Hold]'s context after its release.
	ErrReleased = errors.New("locks: released")
	// ErrNotOwner is returned by Release of a lock when the owner of the context does not hold it. In Java:
	// IllegalMonitorStateException.
	ErrNotOwner = errors.New("locks: not held by this owner")
	// ErrUpgrade is returned when an owner of the read lock acquires the write lock: it would wait for itself.
	ErrUpgrade = errors.New("locks: a reader cannot become a writer")
)

// errNoOwner is the [ErrNotOwner] of a context without an owner.
var errNoOwner = fmt.Errorf("%w: use locks.WithOwner, or release the Hold", ErrNotOwner)
