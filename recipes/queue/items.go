package queue

import (
	"context"
	"iter"
	"sync"

	"github.com/gocurator/curator/internal/telemetry"
)

// Item is an item that was pulled from a queue. With a lock path it stays locked, and in the queue, until Done or
// Requeue; when the queue is closed, or the session lost, before that, another consumer gets it.
type Item[T any] struct {
	Value T
	Info  Info

	of *pulled[T]
	i  int
}

// pulled is a node of which the items were pulled.
type pulled[T any] struct {
	q      *queue[T]
	d      *delivery[T]
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	open  int    // items that are neither done nor put back
	ended []bool // by item
	back  [][]byte
}

// Items returns the items of a queue without a consumer, one after the other, each taken when it is asked for: by several
// loops at a time, if there are. It ends with ctx, whose error comes last, and with Close, with [ErrClosed]. While the
// connection is lost it waits.
func (q *queue[T]) Items(ctx context.Context) iter.Seq2[Item[T], error] {
	return func(yield func(Item[T], error) bool) {
		if err := q.canPull(); err != nil {
			yield(Item[T]{}, err)
			return
		}
		asker := ctx
		ctx, cancel := context.WithCancelCause(telemetry.Untraced(ctx))
		defer cancel(nil)
		stop := context.AfterFunc(q.taking, func() { cancel(context.Cause(q.taking)) })
		defer stop()
		t := taker[T]{q: q}
		defer q.giveBack(&t)
		for {
			asked := q.told.Clock()
			d, err := t.next(ctx)
			if err != nil {
				yield(Item[T]{}, err)
				return
			}
			q.told.Received(asker, asked, len(d.items), d.origin)
			q.told.HandedOver(asker, d.info.Put, len(d.items))
			if !q.yield(d, yield) {
				return
			}
		}
	}
}

func (q *queue[T]) canPull() error {
	switch {
	case q.consumer != nil:
		return ErrHasConsumer
	case q.State() == Latent:
		return ErrNotStarted
	}
	return nil
}

// yield yields the items of a delivery. Those that are not wanted any more go back.
func (q *queue[T]) yield(d *delivery[T], yield func(Item[T], error) bool) bool {
	p := &pulled[T]{q: q, d: d, open: len(d.items), ended: make([]bool, len(d.items))}
	p.ctx, p.cancel = q.workOn(d)
	p.ctx = q.told.In(p.ctx, d.origin)
	if len(d.items) == 0 && d.session != nil {
		q.settleInBackground(p.ctx, d, nil)
	}
	for i, item := range d.items {
		if yield(Item[T]{Value: item, Info: d.info, of: p, i: i}, nil) {
			continue
		}
		for rest := i + 1; rest < len(d.items); rest++ {
			_ = p.end(q.root, rest, true)
		}
		return false
	}
	return true
}

// giveBack ends the taking. What was taken and not yielded goes back to the queue.
func (q *queue[T]) giveBack(t *taker[T]) {
	for _, d := range t.close() {
		if d.session != nil {
			q.release(d)
			continue
		}
		if err := q.putBack(q.root, d, d.parts); err != nil {
			q.reportItem(q.root, d.name.whole, nil, err)
		}
	}
}

// putBack puts items of a delivery into the queue again that are not in it any longer.
func (q *queue[T]) putBack(ctx context.Context, d *delivery[T], parts [][]byte) error {
	data, err := encodeItems(d.trailer, parts...)
	if err != nil {
		return err
	}
	_, err = q.producer.putBack(ctx, d.name.prefix, data).Wait(ctx)
	return err
}

// Context returns a context for the work on the item, in the trace of its put if that has travelled with it. It ends when
// the lock of the item is lost, with the cause [ErrLockLost], and when the item is done.
func (i Item[T]) Context() context.Context { return i.of.ctx }

// Done deletes the item from the queue. Without a lock path that has happened before, and Done does nothing. Of several
// items that were put together the last one deletes them. It fails with [ErrLockLost] if another consumer may have got
// the item meanwhile, and with [ErrClosed]; ctx bounds the waiting, not the deleting. It is idempotent.
func (i Item[T]) Done(ctx context.Context) error { return i.of.end(ctx, i.i, false) }

// Requeue puts the item back, behind the others, with its priority, delay or id. It fails as Done does, and does nothing
// after Done.
func (i Item[T]) Requeue(ctx context.Context) error { return i.of.end(ctx, i.i, true) }

// end ends item i.
func (p *pulled[T]) end(ctx context.Context, i int, back bool) error {
	p.mu.Lock()
	if p.ended[i] {
		p.mu.Unlock()
		return nil
	}
	p.ended[i] = true
	p.open--
	if back {
		p.back = append(p.back, p.d.parts[i])
	}
	last := p.open == 0
	p.mu.Unlock()
	if !last {
		return nil
	}
	defer p.cancel()
	if p.d.session == nil {
		if len(p.back) == 0 {
			return nil
		}
		return p.q.putBack(ctx, p.d, p.back)
	}
	done := make(chan error, 1)
	p.q.settle(telemetry.TracedOr(ctx, p.ctx), p.d, p.back, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
