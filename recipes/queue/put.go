package queue

import (
	"context"
	"slices"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// PutEvent is the outcome of a put.
type PutEvent[T any] struct {
	Items []T
	// Path is the path of the node that holds the items.
	Path string
	// Err is nil if the items are in the queue. With [ErrUncertain] they may be.
	Err error
}

// PutListeners returns the listeners of put outcomes. They are called with the outcome of every put, one at a time, in
// the order of the outcomes. They run on their own goroutine, and no put waits for them: they may put, too, and call
// FlushPuts and Close, which do not wait for listeners then. Events stay in memory while the listeners are too slow. In
// Java: QueuePutListener, which is called for successes alone.
func (q *queue[T]) PutListeners() callbacks.Listenable[PutEvent[T]] { return &q.listeners }

// FlushPuts waits until the outcome of all puts that were accepted before it is available, and the listeners were
// called. The error is the error of ctx, or the failures of puts by any goroutine that no FlushPuts had reported when
// this one began. So with several goroutines that put, one may get the failure of another, and miss its own if another
// has flushed before: PutAsync returns each put's own outcome. In Java: flushPuts.
func (q *queue[T]) FlushPuts(ctx context.Context) error { return q.producer.flush(ctx) }

// put passes items to the producer.
func (q *queue[T]) put(ctx context.Context, prefix string, items []T) (*PendingPut, error) {
	ctx, sending := q.obs.Send(ctx, len(items))
	data, err := q.serialize(ctx, items)
	x := newPendingPut(prefix, data)
	if sending != nil {
		x.cause, x.sending = ctx, sending
	}
	x.ended = func(path string, err error) func() {
		sending.End(zkpath.Node(path), err)
		if q.listeners.Len() == 0 {
			return nil
		}
		return func() {
			ctx := context.WithoutCancel(ctx)
			event := PutEvent[T]{Items: items, Path: path, Err: err}
			q.listeners.Notify(ctx, event, waitqueue.Guard(ctx, q.client, q.label()))
		}
	}
	if err == nil {
		err = q.accept(ctx, x)
	}
	if err != nil {
		sending.Refused(err)
		return nil, err
	}
	return x, nil
}

// accept passes x to the producer when there is room in the queue.
func (q *queue[T]) accept(ctx context.Context, x *PendingPut) error {
	switch q.State() {
	case Latent:
		return ErrNotStarted
	case Closed:
		return ErrClosed
	}
	if q.room != nil {
		return q.room.put(ctx, x)
	}
	return q.producer.put(ctx, x)
}

// putMulti puts all items in one node, if there are any.
func (q *queue[T]) putMulti(ctx context.Context, prefix string, items []T) error {
	if len(items) == 0 {
		return nil
	}
	_, err := q.put(ctx, prefix, slices.Clone(items)) // listeners use them later
	return err
}
