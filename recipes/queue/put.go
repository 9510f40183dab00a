package queue

import (
	"context"
	"iter"
	"slices"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// PutEvent tells what became of a put.
type PutEvent[T any] struct {
	Items []T
	// Path is that of the node that holds them.
	Path string
	// Err is nil if they are in the queue. With [ErrUncertain] they may be.
	Err error
}

// PutListeners returns those that are told of every put, in the order of the puts, when it is done. In Java:
// QueuePutListener, which is told of successes alone.
func (q *queue[T]) PutListeners() *callbacks.Listeners[PutEvent[T]] { return &q.listeners }

// FlushPuts waits until the items that were put before it are in the queue. The error is that of ctx, or tells of the
// puts that have failed since the last FlushPuts. In Java: flushPuts.
func (q *queue[T]) FlushPuts(ctx context.Context) error { return q.producer.flush(ctx) }

// put hands items to the producer.
func (q *queue[T]) put(ctx context.Context, prefix string, items []T) error {
	if len(items) == 0 {
		return nil
	}
	ctx, sending := q.told.Send(ctx, len(items))
	data, err := q.serialize(ctx, items)
	if err != nil {
		sending.End("", err)
		return err
	}
	x := &putting{prefix: prefix, data: data}
	if sending != nil {
		x.cause = ctx
	}
	x.done = func(path string, err error) {
		sending.End(zkpath.Node(path), err)
		ctx := context.WithoutCancel(ctx)
		q.listeners.Notify(ctx, PutEvent[T]{Items: items, Path: path, Err: err}, lineup.Guard(ctx, q.client, q.what()))
	}
	if err := q.accept(ctx, x); err != nil {
		sending.End("", err)
		return err
	}
	return nil
}

// accept hands x to the producer, when there is room in the queue.
func (q *queue[T]) accept(ctx context.Context, x *putting) error {
	switch q.State() {
	case Latent:
		return ErrNotStarted
	case Closed:
		return ErrClosed
	}
	if q.maxItems > 0 {
		select {
		case q.room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-q.room }()
		if err := q.awaitRoom(ctx); err != nil {
			return err
		}
	}
	return q.producer.put(ctx, x)
}

// collect returns the items of a sequence; a slice of its own, that the caller cannot change.
func collect[T any](items iter.Seq[T]) []T { return slices.Collect(items) }
