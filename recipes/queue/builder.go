package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/zkpath"
)

// Builder builds queues. It is a value: each step returns a changed copy. In Java: QueueBuilder.
type Builder[T any] struct {
	paths    node.Paths
	consumer Consumer[T]
	codec    codec.Codec[T]
	options
}

// NewBuilder returns a builder of queues at a path. A queue without a consumer is for putting, and for pulling with
// Items. In Java: QueueBuilder.builder.
func NewBuilder[T any](
	client *framework.Client, consumer Consumer[T], items codec.Codec[T], path string,
) Builder[T] {
	return Builder[T]{
		paths: node.Paths{Client: client, Queue: path}, consumer: consumer, codec: items,
		options: options{window: 100, prefetch: 100, concurrency: 1, finalFlush: 5 * time.Second},
	}
}

// Name sets the queue's name in spans and metrics; the default is no name. Metrics have one series for each name, so
// keep the number of names small.
func (b Builder[T]) Name(name string) Builder[T] { b.name = name; return b }

// MeasureDepth adds gauges of the number of nodes in the queue and of the age of the first, from Start to Close. Each
// collection of the metrics lists the queue and reads its first item, for a second at most. Use it in one process only,
// and for a queue that has a name. The default is no gauges.
func (b Builder[T]) MeasureDepth() Builder[T] { b.measureDepth = true; return b }

// LockPath sets the parent of the items' locks. Each item is locked while it is consumed, and deleted afterwards: it is
// delivered at least once. Without a lock path an item is deleted, then consumed: it is delivered at most once. All
// consumers of a queue must agree on it. In Java: lockPath.
func (b Builder[T]) LockPath(path string) Builder[T] { b.paths.Locks = path; return b }

// MaxItems bounds the queue: Put waits while the queue has so many nodes. Processes that put at the same moment may
// each exceed the bound by one item. A process that is delayed between counting and putting may exceed it by up to a
// 32nd of the room that it has counted. In Java: maxItems.
func (b Builder[T]) MaxItems(n int) Builder[T] {
	b.maxItems = n
	return b.check(n >= 1, "a queue of at most %d items", n)
}

// PutWindow sets how many puts may be under way; the next Put waits. Without a lock path, a lost connection may leave
// the outcome of as many puts unknown ([ErrUncertain]). The default is 100.
func (b Builder[T]) PutWindow(n int) Builder[T] {
	b.window = n
	return b.check(n >= 1, "a window of %d puts", n)
}

// Prefetch sets how many items may be claimed ahead of the consumer, at most. The queue claims as many as the consumer
// takes in some milliseconds, and no more than 1 MB of data. While an item takes long, those claimed ahead wait behind
// it: set 0, which claims each item when it is wanted, if a few items take much longer than the others. Without a lock
// path a crash loses the items claimed ahead. The default is 100.
func (b Builder[T]) Prefetch(n int) Builder[T] {
	b.prefetch = n
	return b.check(n >= 0, "a prefetch of %d items", n)
}

// Concurrency sets how many items are consumed at a time. The default is 1, which keeps their order. In Java: executor.
func (b Builder[T]) Concurrency(n int) Builder[T] {
	b.concurrency = n
	return b.check(n >= 1, "a concurrency of %d", n)
}

// ErrorMode sets the handling of an item whose consumer fails. In Java: setErrorMode.
func (b Builder[T]) ErrorMode(m ErrorMode) Builder[T] {
	b.mode = m
	return b.check(m == RequeueOnError || m == DeleteOnError, "error mode %d", int(m))
}

// MaxDeliveries sets how many times an item is delivered while its consumer fails. After the last failure the item is
// moved to the dead letters, under the name that it was put with, and OnError is called. The items behind it that were
// put with it are put back. It needs a DeadLetterPath, a LockPath and [RequeueOnError]. The default is 0, for any
// number. The deliveries are counted in the node: Java keeps the count when it puts an item back, but does not add to
// it.
func (b Builder[T]) MaxDeliveries(n int) Builder[T] {
	b.maxDeliveries = n
	return b.check(n >= 0, "at most %d deliveries", n)
}

// FinalFlushTime bounds the duration of Close, apart from ten seconds more for a consumer that does not return when its
// context ends, and from a second more for OnError. The default is 5 s. In Java: finalFlushTime.
func (b Builder[T]) FinalFlushTime(d time.Duration) Builder[T] {
	b.finalFlush = d
	wrong := errtext.TooShort(d)
	return b.check(d >= 0, "a final flush of %v", d).check(wrong == "", "a final flush of %s", wrong)
}

// OnError sets the handler of background errors: errors of the consumer, its panics as errors, items with an unknown
// outcome ([ErrUncertain]), and failures to read the queue. An error about an item is an [*ItemError]; if the item has
// been consumed, ctx is in the same trace. The calls of fn are serialized on their own goroutine, and fn may call
// Close. The default reports to the client's unhandled-error listeners and its log.
func (b Builder[T]) OnError(fn func(ctx context.Context, err error)) Builder[T] {
	b.onError = fn
	return b
}

// DeadLetterPath sets the path below which undecodable items are moved, with their names. That path is a queue, too.
// Without it an undecodable item stays in the queue and is retried with growing pauses; OnError is called once, with
// its bytes.
func (b Builder[T]) DeadLetterPath(path string) Builder[T] { b.paths.DeadLetters = path; return b }

// check records an invalid argument, to be returned at the end of the building.
func (b Builder[T]) check(ok bool, format string, args ...any) Builder[T] {
	if !ok && b.err == nil {
		b.err = fmt.Errorf("queue: "+format, args...)
	}
	return b
}

// build returns the part that all kinds of queues share.
func (b Builder[T]) build(k node.Kind) (*queue[T], error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.codec == nil {
		return nil, fmt.Errorf("queue: no codec")
	}
	all := []string{b.paths.Queue}
	for _, p := range []string{b.paths.Locks, b.paths.DeadLetters} {
		if p != "" {
			all = append(all, p)
		}
	}
	for i, p := range all {
		if err := zkpath.Validate(p, false); err != nil {
			return nil, errtext.Wrap(err, "queue", "")
		}
		if slices.Contains(all[:i], p) {
			return nil, fmt.Errorf("queue: %s has two uses", p)
		}
	}
	switch {
	case b.mode == RequeueOnError && b.paths.Locks == "":
		return nil, fmt.Errorf("queue: to put items back there has to be a lock path")
	case b.mode == 0 && b.paths.Locks != "":
		b.mode = RequeueOnError
	case b.mode == 0:
		b.mode = DeleteOnError
	}
	if b.maxDeliveries > 0 && (b.paths.DeadLetters == "" || b.mode != RequeueOnError) {
		return nil, fmt.Errorf("queue: MaxDeliveries needs a DeadLetterPath, a LockPath and RequeueOnError")
	}
	return newQueue(b.paths, k, b.consumer, b.codec, b.options), nil
}

// BuildQueue returns a [DistributedQueue].
func (b Builder[T]) BuildQueue() (*DistributedQueue[T], error) {
	q, err := b.build(node.Plain)
	if err != nil {
		return nil, err
	}
	return &DistributedQueue[T]{q}, nil
}

// BuildPriorityQueue returns a [DistributedPriorityQueue] in which at most minItemsBeforeRefresh items, or
// one for 0, go before a more urgent one that is put.
func (b Builder[T]) BuildPriorityQueue(minItemsBeforeRefresh int) (*DistributedPriorityQueue[T], error) {
	b = b.check(minItemsBeforeRefresh >= 0, "a refresh after %d items", minItemsBeforeRefresh)
	q, err := b.build(node.ByPriorities(max(minItemsBeforeRefresh, 1)))
	if err != nil {
		return nil, err
	}
	return &DistributedPriorityQueue[T]{q}, nil
}

// BuildDelayQueue returns a [DistributedDelayQueue].
func (b Builder[T]) BuildDelayQueue() (*DistributedDelayQueue[T], error) {
	q, err := b.build(node.Delayed)
	if err != nil {
		return nil, err
	}
	return &DistributedDelayQueue[T]{q}, nil
}

// BuildIDQueue returns a [DistributedIDQueue].
func (b Builder[T]) BuildIDQueue() (*DistributedIDQueue[T], error) {
	q, err := b.build(node.WithIDs)
	if err != nil {
		return nil, err
	}
	return &DistributedIDQueue[T]{q}, nil
}
