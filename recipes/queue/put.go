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
	// Path is that of the node that holds them.
	Path string
	// Err is nil if they are in the queue. With [ErrUncertain] they may be.
	Err error
}

// PutListeners returns the listeners that are called with the outcome of every put, one at a time, in the order of the
// outcomes. They run on a goroutine of their own, and no put waits for them: they may put, too, and events that they
// are too slow for stay in memory. In Java: QueuePutListener, which is called for successes alone.
func (q *queue[T]) PutListeners() callbacks.Listenable[PutEvent[T]] { return &q.listeners }

// FlushPuts waits until the outcome of all puts that were accepted before it is known, and the listeners were called.
// The error is that of ctx, or is about the puts that have failed, whoever has put them: those that no FlushPuts had
// reported when this one began. So of several goroutines that put, one may be returned the failure of another, and
// none its own if another has flushed before: PutAsync returns each put's own outcome. A listener calls FlushPuts with
// the context that it was given: then no listeners are waited for. In Java: flushPuts.
func (q *queue[T]) FlushPuts(ctx context.Context) error { return q.producer.flush(ctx) }

// put hands items to the producer.
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
			ctx := q.producer.inListener(context.WithoutCancel(ctx))
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

// accept hands x to the producer, when there is room in the queue.
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
	_, err := q.put(ctx, prefix, slices.Clone(items)) // listeners get them later
	return err
}
