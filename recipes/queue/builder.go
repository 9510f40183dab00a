package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// Consumer is given the items of a queue. ctx ends when the lock of the item is lost, with the cause [ErrLockLost], and
// when Close has waited long enough, with [ErrClosed]; [InfoOf] tells more of the item. What an error or a panic does to
// the item is said by [ErrorMode]. In Java: QueueConsumer.
type Consumer[T any] func(ctx context.Context, item T) error

// ErrorMode says what becomes of an item whose consumer fails. In Java: ErrorMode.
type ErrorMode int

const (
	// RequeueOnError puts the item back, behind the others, with its priority, delay or id. It is the default with a
	// lock path, and needs one.
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

// Builder builds queues. It is a value: each step returns a changed copy. In Java: QueueBuilder.
type Builder[T any] struct {
	client     Client
	consumer   Consumer[T]
	serializer Serializer[T]
	path       string
	options
}

// options are those that do not depend on the type of the items.
type options struct {
	name        string
	lockPath    string
	deadLetters string
	maxItems    int
	window      int
	prefetch    int
	concurrency int
	mode        ErrorMode
	finalFlush  time.Duration
	onError     func(ctx context.Context, err error)
	onCorrupt   func(ctx context.Context, item Corrupt) error
	bad         error
}

// NewBuilder returns a builder of queues at a path. Without a consumer the queue is for those who put, and for pulling
// with Items. In Java: QueueBuilder.builder.
func NewBuilder[T any](client Client, consumer Consumer[T], serializer Serializer[T], path string) Builder[T] {
	return Builder[T]{client: client, consumer: consumer, serializer: serializer, path: path, options: options{
		window: 100, prefetch: 100, concurrency: 1, finalFlush: 5 * time.Second,
	}}
}

// Name sets what spans and metrics call the queue; the default is nothing. Metrics have a series for each name, so there
// should be few.
func (b Builder[T]) Name(name string) Builder[T] { b.name = name; return b }

// LockPath has each item locked, below that path, while it is consumed, and deleted afterwards: it is delivered at least
// once. Without a lock path an item is deleted, then consumed: it is delivered at most once. All consumers of a queue
// have to agree on it. In Java: lockPath.
func (b Builder[T]) LockPath(path string) Builder[T] { b.lockPath = path; return b }

// MaxItems bounds the queue: Put waits while there are so many nodes in it. Of several processes that put at the same
// moment each may add one more, and one that is held up between counting and putting up to a 32nd of the room that it
// has counted. In Java: maxItems.
func (b Builder[T]) MaxItems(n int) Builder[T] {
	b.maxItems = n
	return b.check(n >= 1, "a queue of at most %d items", n)
}

// PutWindow sets how many puts may be under way; the next Put waits. Without a lock path the outcome of
// as many may be unknown after a lost connection ([ErrUncertain]). The default is 100.
func (b Builder[T]) PutWindow(n int) Builder[T] {
	b.window = n
	return b.check(n >= 1, "a window of %d puts", n)
}

// Prefetch sets how many items a consumer may have taken that are still to be consumed, for as long as it is faster than
// the server answers. Without a lock path these are what a crash loses. The default is 100; 0 takes each item when it is
// wanted.
func (b Builder[T]) Prefetch(n int) Builder[T] {
	b.prefetch = n
	return b.check(n >= 0, "a prefetch of %d items", n)
}

// Concurrency sets how many items the consumer is given at a time. The default is 1, which keeps their order. In Java:
// executor.
func (b Builder[T]) Concurrency(n int) Builder[T] {
	b.concurrency = n
	return b.check(n >= 1, "a concurrency of %d", n)
}

// ErrorMode says what becomes of an item whose consumer fails. In Java: setErrorMode.
func (b Builder[T]) ErrorMode(m ErrorMode) Builder[T] {
	b.mode = m
	return b.check(m == RequeueOnError || m == DeleteOnError, "error mode %d", int(m))
}

// FinalFlushTime sets how long Close waits for puts that are under way, and for the consumer before its context ends. The
// default is 5 s. In Java: finalFlushTime.
func (b Builder[T]) FinalFlushTime(d time.Duration) Builder[T] {
	b.finalFlush = d
	wrong := errtext.TooShort(d)
	return b.check(d >= 0, "a final flush of %v", d).check(wrong == "", "a final flush of %s", wrong)
}

// OnError has fn told of what goes wrong in the background: errors of the consumer, a panic as an error, items of which
// the outcome is not known ([ErrUncertain]), and what keeps the queue from being read. About an item it is an
// [*ItemError]; when that has been consumed, ctx is in the same trace. It is called from several goroutines. The default
// tells the client's unhandled-error listeners and its log.
func (b Builder[T]) OnError(fn func(ctx context.Context, err error)) Builder[T] {
	b.onError = fn
	return b
}

// OnCorrupt has fn given the items that cannot be read. If it returns nil the item is deleted; else, as without it, the
// item stays in the queue, which leaves it out from then on, and OnError is told.
func (b Builder[T]) OnCorrupt(fn func(ctx context.Context, item Corrupt) error) Builder[T] {
	b.onCorrupt = fn
	return b
}

// DeadLetterPath has items that cannot be read moved below that path, with their names: it is a queue, too.
func (b Builder[T]) DeadLetterPath(path string) Builder[T] { b.deadLetters = path; return b }

// check notes what is wrong, for the end of the building.
func (b Builder[T]) check(ok bool, format string, args ...any) Builder[T] {
	if !ok && b.bad == nil {
		b.bad = fmt.Errorf("queue: "+format, args...)
	}
	return b
}

// build returns what all queues share.
func (b Builder[T]) build(k kind) (*queue[T], error) {
	if b.bad != nil {
		return nil, b.bad
	}
	if b.serializer == nil {
		return nil, fmt.Errorf("queue: no serializer")
	}
	paths := []string{b.path}
	for _, p := range []string{b.lockPath, b.deadLetters} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	for i, p := range paths {
		if err := zkpath.Validate(p, false); err != nil {
			return nil, errtext.Wrap(err, "queue", "")
		}
		if i > 0 && p == b.path {
			return nil, fmt.Errorf("queue: %s is the path of the queue", p)
		}
	}
	switch {
	case b.mode == RequeueOnError && b.lockPath == "":
		return nil, fmt.Errorf("queue: to put items back there has to be a lock path")
	case b.mode == 0 && b.lockPath != "":
		b.mode = RequeueOnError
	case b.mode == 0:
		b.mode = DeleteOnError
	}
	return newQueue(b, k), nil
}

// BuildQueue returns a [DistributedQueue].
func (b Builder[T]) BuildQueue() (*DistributedQueue[T], error) {
	q, err := b.build(plain)
	if err != nil {
		return nil, err
	}
	return &DistributedQueue[T]{q}, nil
}

// BuildPriorityQueue returns a [DistributedPriorityQueue] that looks for more urgent items whenever it has taken
// minItemsBeforeRefresh of them; 0 does so after each.
func (b Builder[T]) BuildPriorityQueue(minItemsBeforeRefresh int) (*DistributedPriorityQueue[T], error) {
	b = b.check(minItemsBeforeRefresh >= 0, "a refresh after %d items", minItemsBeforeRefresh)
	q, err := b.build(byPriorities(max(minItemsBeforeRefresh, 1)))
	if err != nil {
		return nil, err
	}
	return &DistributedPriorityQueue[T]{q}, nil
}

// BuildDelayQueue returns a [DistributedDelayQueue].
func (b Builder[T]) BuildDelayQueue() (*DistributedDelayQueue[T], error) {
	q, err := b.build(delayed)
	if err != nil {
		return nil, err
	}
	return &DistributedDelayQueue[T]{q}, nil
}

// BuildIDQueue returns a [DistributedIDQueue].
func (b Builder[T]) BuildIDQueue() (*DistributedIDQueue[T], error) {
	q, err := b.build(withIDs)
	if err != nil {
		return nil, err
	}
	return &DistributedIDQueue[T]{q}, nil
}
