package queue

import (
	"context"
	"time"
)

// Consumer consumes the items of a queue. ctx ends when the lock of the item is lost, with the cause [ErrLockLost], and
// when Close has waited long enough, with [ErrClosed]. [InfoOf] returns more about the item. [ErrorMode] sets the
// handling of an item after an error or a panic. In Java: QueueConsumer.
type Consumer[T any] func(ctx context.Context, item T) error

// ErrorMode sets the handling of an item whose consumer fails. In Java: ErrorMode.
type ErrorMode int

const (
	// RequeueOnError puts the item back, behind the others, with its priority, delay or id. It waits before for a pause
	// that grows with each failure up to 10 s. It is the default with a lock path, and needs one.
	RequeueOnError ErrorMode = iota + 1
	// DeleteOnError drops the item. It is the default without a lock path, and the only mode then.
	DeleteOnError
)

// options are the settings that do not depend on the type of the items.
type options struct {
	name          string
	measureDepth  bool
	maxItems      int
	window        int
	prefetch      int
	concurrency   int
	mode          ErrorMode
	maxDeliveries int
	finalFlush    time.Duration
	onError       func(ctx context.Context, err error)
	err           error // of an argument
}
