package locks

import (
	"context"
	"time"
)

// InterProcessLock is the common interface of the locks of this package. In Java: InterProcessLock.
type InterProcessLock interface {
	// Acquire waits until the caller holds the lock or ctx ends.
	Acquire(ctx context.Context) (*Hold, error)
	// TryAcquire is Acquire that fails with [ErrNotAcquired] after wait. 0 does not wait for other holders.
	TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error)
	// IsAcquiredInThisProcess reports whether the lock is held through this value.
	IsAcquiredInThisProcess() bool
}
