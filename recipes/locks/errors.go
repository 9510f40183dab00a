package locks

import (
	"errors"
	"fmt"

	"github.com/gocurator/curator/recipes/internal/lineup"
)

var (
	// ErrNotAcquired is returned by TryAcquire when others held the lock for all the time it could wait.
	ErrNotAcquired = lineup.ErrNotAcquired
	// ErrLockLost is the cause of the end of a [Hold]'s context when its session was lost or its node deleted. It is
	// returned by [Do] when that happened while the function ran, when an owner enters again a lock that it has lost, and
	// by writes that the lock fences. leader.ErrLeadershipLost matches it.
	ErrLockLost = lineup.ErrLost
	// ErrReleased is the cause of the end of a [Hold]'s context when it was released.
	ErrReleased = errors.New("locks: released")
	// ErrNotOwner is returned by Release of a lock when the owner of the context does not hold it. In Java:
	// IllegalMonitorStateException.
	ErrNotOwner = errors.New("locks: not held by this owner")
	// ErrUpgrade is returned when an owner that has the read lock asks for the write lock: it would wait for itself.
	ErrUpgrade = errors.New("locks: a reader cannot become a writer")
)

// errNoOwner is the ErrNotOwner of a context without an owner.
var errNoOwner = fmt.Errorf("%w: use locks.WithOwner, or release the Hold", ErrNotOwner)
