package queue

import (
	"context"
	"time"
)

// Consumer is given the items of a queue. ctx ends when the lock of the item is lost, with the cause [ErrLockLost], and
// when Close has waited long enough, with [ErrClosed]; [InfoOf] returns more about the item. [ErrorMode] says what an
// error or a panic does to the item. In Java: QueueConsumer.
type Consumer[T any] func(ctx context.Context, item T) error

// ErrorMode decides the fate of an item whose consumer fails. In Java: ErrorMode.
type ErrorMode int

const (
	// RequeueOnError puts the item back, behind the others, with its priority, delay or id, after a pause that grows with
	// each failure up to 10 s. It is the default with a lock path, and needs one.
	RequeueOnError ErrorMode = iota + 1
	// DeleteOnError drops the item. It is the default, and all there is, without a lock path.
	DeleteOnError
)

// Corrupt is an item that cannot be read.
type Corrupt struct {
	Path string // of its node
	Data []byte
	Err  error // it wraps [ErrCorrupt], or is that of the serializer
}

// options are those that do not depend on the type of the items.
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
	onCorrupt     func(ctx context.Context, item Corrupt) error
	err           error // of an argument
}
