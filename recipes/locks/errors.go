package locks

import "errors"

var (
	// ErrNotAcquired is returned by TryAcquire when others held the lock for all the time it could wait.
	ErrNotAcquired = errors.New("locks: not acquired")
	// ErrLockLost is the cause of the end of a [Hold]'s context when its session was lost, and is returned when an
	// owner enters again a lock that it has lost.
	ErrLockLost = errors.New("locks: lock lost")
	// ErrReleased is the cause of the end of a [Hold]'s context when it was released.
	ErrReleased = errors.New("locks: released")
	// ErrNotOwner is returned by Release of a lock when the owner of the context does not hold it. In Java:
	// IllegalMonitorStateException.
	ErrNotOwner = errors.New("locks: not held by this owner")
)
