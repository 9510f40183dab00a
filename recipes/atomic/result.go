package atomic

import "time"

// Result is the result of a change. In Java: AtomicValue.
type Result[T any] struct {
	// Succeeded reports whether the change was applied. It is false if others were faster at each try, and if a
	// comparison failed.
	Succeeded bool
	// Pre is the value before the change, as far as it is known. A number that does not exist is 0.
	Pre T
	// Post is the value after the change. Without Succeeded it is zero, and with [ErrUncertain] the value that the change
	// would have left.
	Post T
	// Stats has what the change took.
	Stats Stats
}

// Stats is what a change took. Changes that goroutines want at the same time may share it. In Java: AtomicStats.
type Stats struct {
	// OptimisticTries is the number of tries without a lock.
	OptimisticTries int
	// OptimisticTime is the time that these took.
	OptimisticTime time.Duration
	// PromotedTries is the number of tries with the lock of [WithPromotedToLock].
	PromotedTries int
	// PromotedTime is the time that these took, with the wait for the lock.
	PromotedTime time.Duration
}
