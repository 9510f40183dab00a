package queue

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/produce"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// Item is an item that was pulled from a queue. With a lock path it stays locked, and in the queue, until Done or
// Requeue. If the queue is closed or the session is lost before that, another consumer gets it.
type Item[T any] struct {
	Value T
	Info  Info

	of *pulled[T]
	i  int
}

// pulled is a node with pulled items.
type pulled[T any] struct {
	*delivery[T]
	q *queue[T]

	mu    sync.Mutex
	open  int    // items that are neither done nor put back
	ended []bool // by item
	back  [][]byte
}

// Items returns the items of a queue without a consumer, one after the other. Each item is claimed when the loop
// requests it. Several loops may run at the same time. The sequence ends with ctx, with its error as the last, with
// Close, with [ErrClosed], and with framework.ErrNoChroot if the chroot does not exist. While the connection is lost it
// waits.
func (q *queue[T]) Items(ctx context.Context) iter.Seq2[Item[T], error] {
	return func(yield func(Item[T], error) bool) {
		if err := q.beginPulling(); err != nil {
			yield(Item[T]{}, err)
			return
		}
		defer q.endPulling()
		caller := ctx
		ctx, cancel := context.WithCancelCause(telemetry.Untraced(ctx))
		defer cancel(nil)
		stop := context.AfterFunc(q.claiming, func() { cancel(context.Cause(q.claiming)) })
		defer stop()
		for {
			started := q.obs.Clock()
			p, err := q.pull(ctx)
			if err != nil {
				yield(Item[T]{}, err)
				return
			}
			d := p.delivery
			received := q.obs.Received(caller, started, len(d.items), d.origin)
			q.obs.HandedOver(received, d.history.FirstPut(d.info.Put), len(d.items))
			if !q.yield(p, yield) {
				return
			}
		}
	}
}

// pull waits for the next delivery and returns it, held. When ctx ends it does not wait for requests under way: their
// items go back to the queue. Close waits for that.
func (q *queue[T]) pull(ctx context.Context) (*pulled[T], error) {
	type result struct {
		p   *pulled[T]
		err error
	}
	results := make(chan result)
	started := q.runUnlessClosed(func() {
		r := result{err: errExited}
		defer func() {
			select {
			case results <- r:
			case <-ctx.Done():
				if r.p != nil {
					q.giveUp(r.p)
				}
			}
		}()
		r.p, r.err = q.next(ctx)
	})
	if !started {
		return nil, ErrClosed
	}
	select {
	case r := <-results:
		return r.p, waitqueue.Explain(ctx, q.paths.Client, r.err)
	case <-ctx.Done():
		return nil, waitqueue.Explain(ctx, q.paths.Client, context.Cause(ctx))
	}
}

// next waits for the next delivery and holds it.
func (q *queue[T]) next(ctx context.Context) (*pulled[T], error) {
	m, err := q.fetcher.Next(ctx)
	if err != nil {
		return nil, err
	}
	d := q.deliver(m)
	p := &pulled[T]{delivery: d, q: q, open: len(d.items), ended: make([]bool, len(d.items))}
	p.in = q.obs.In(p.ctx, d.origin)
	q.hold(p)
	return p, nil
}

// runUnlessClosed runs fn on its own goroutine unless the queue is closed.
func (q *queue[T]) runUnlessClosed(fn func()) (started bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != Started {
		return false
	}
	q.cleanups.Run(fn)
	return true
}

func (q *queue[T]) beginPulling() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.consumer != nil:
		return ErrHasConsumer
	case q.state == Latent:
		return ErrNotStarted
	case q.state == Closed:
		return ErrClosed
	}
	q.loops++
	return nil
}

// endPulling ends a loop. After the last loop, claimed items that were not yielded go back to the queue, unless another
// loop begins before. That happens in the background, because it may wait for an answer. Close does it itself.
func (q *queue[T]) endPulling() {
	q.mu.Lock()
	q.loops--
	q.mu.Unlock()
	if q.isPulled() {
		return
	}
	_ = q.runUnlessClosed(func() {
		if !q.isPulled() {
			q.giveBack()
		}
	})
}

// isPulled reports whether a loop of Items is running.
func (q *queue[T]) isPulled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.loops > 0
}

// giveBack returns claimed items that were not yielded, for other consumers.
func (q *queue[T]) giveBack() {
	for m := q.fetcher.Drain(); m != nil; m = q.fetcher.Drain() {
		q.returnUnused(m)
	}
}

// giveUp returns a delivery that was pulled for a loop that has ended meanwhile, for other consumers.
func (q *queue[T]) giveUp(p *pulled[T]) {
	p.end()
	if q.unhold(p) || p.Lock == nil || len(p.items) == 0 {
		q.returnUnused(p.Message)
	}
}

// returnUnused returns an item of ours that was not yielded, for other consumers.
func (q *queue[T]) returnUnused(m *claim.Message) {
	if m.Lock != nil {
		q.release(m)
	} else {
		q.putAgainInBackground(m)
	}
}

// yield yields the items of a delivery. The rest go back if the loop stops.
func (q *queue[T]) yield(p *pulled[T], yield func(Item[T], error) bool) bool {
	d := p.delivery
	if len(d.items) == 0 && d.Lock != nil {
		q.settleInBackground(d, &claim.Settlement{})
	}
	for i, item := range d.items {
		if yield(Item[T]{Value: item, Info: d.info, of: p, i: i}, nil) {
			continue
		}
		q.cleanups.Run(func() { p.giveBackFrom(i + 1) })
		return false
	}
	return true
}

// hold records that p is ours.
func (q *queue[T]) hold(p *pulled[T]) {
	if p.Lock == nil || len(p.items) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held[p] = struct{}{}
}

// unhold ends hold. It reports whether p was held.
func (q *queue[T]) unhold(p *pulled[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, isHeld := q.held[p]
	delete(q.held, p)
	return isHeld
}

// releaseHeld returns all pulled items that are not done, for other consumers.
func (q *queue[T]) releaseHeld() {
	q.mu.Lock()
	held := q.held
	q.held = make(map[releaser]struct{})
	q.mu.Unlock()
	for p := range held {
		p.release()
	}
}

func (p *pulled[T]) release() {
	p.fence.close()
	p.end()
	p.q.release(p.Message)
}

// putAgainInBackground puts a message into the queue again, and reports an error.
func (q *queue[T]) putAgainInBackground(m *claim.Message) {
	if q.life.Err() != nil { // there is no time for it
		q.reportItem(q.root, m.Name, m.Data, ErrClosed)
		return
	}
	q.follow(q.producer.PutBack(q.life, m.Name.Prefix, m.BytesToPutBack()))
}

// follow waits for the outcome of a put in the background, and reports an error.
func (q *queue[T]) follow(x *produce.Put) {
	q.cleanups.Run(func() {
		<-x.Done()
		if _, err := x.Wait(q.root); err != nil {
			q.report(q.root, err)
			return
		}
		q.obs.PutBack(q.root)
	})
}

// Context returns a context for the work on the item, in the trace of its put if the item carries one. It ends when the
// lock of the item is lost, with the cause [ErrLockLost], and when the item is done.
func (i Item[T]) Context() context.Context { return i.of.in }

// Done deletes the item from the queue. Without a lock path the item was deleted before, and Done does nothing. Of
// several items that were put together the last one deletes them. It fails with [ErrLockLost] if another consumer may
// have got the item meanwhile, and with [ErrClosed]. ctx bounds the wait, not the deletion; OnError gets a later error.
// It is idempotent.
func (i Item[T]) Done(ctx context.Context) error { return i.of.finish(ctx, i.i, false) }

// Requeue puts the item back, behind the others, with its priority, delay or id. With a lock path, several items that
// were put together go back when the last of them is done or put back. Requeue fails in the same cases as Done, and
// with [zk.ErrNoNode] if somebody else has deleted the item meanwhile. It does nothing after Done.
func (i Item[T]) Requeue(ctx context.Context) error { return i.of.finish(ctx, i.i, true) }

// finish ends item number i.
func (p *pulled[T]) finish(ctx context.Context, i int, back bool) error {
	isFirst, isLast := p.note(i, back)
	switch {
	case p.Lock == nil && isFirst && back:
		return p.putBackAlone(ctx, i)
	case p.Lock == nil, !isLast:
		return nil
	}
	defer p.end()
	if !p.q.unhold(p) {
		return ErrClosed
	}
	var isTaken atomic.Bool // the outcome is returned, or nobody waits for it any more
	var outcome error
	done := make(chan struct{})
	p.q.settle(telemetry.TracedOr(ctx, p.in), p.delivery, &claim.Settlement{Back: p.rest()}, func(err error) {
		if isTaken.Swap(true) {
			p.q.reportSettlement(p.in, p.Name, err)
			return
		}
		outcome = err
		close(done)
	})
	if !reply.Await(ctx, done) && !isTaken.Swap(true) {
		return ctx.Err()
	}
	<-done
	return outcome
}

// putBackAlone puts back item number i of a node without a lock. An error after the end of ctx is reported.
func (p *pulled[T]) putBackAlone(ctx context.Context, i int) error {
	x := p.q.producer.PutBack(ctx, p.Name.Prefix, p.encodeAgain(p.history, p.parts[i:i+1]))
	if !reply.IsClosed(x.Done()) && !reply.Await(ctx, x.Done()) {
		p.q.follow(x)
		return ctx.Err()
	}
	_, err := x.Wait(ctx)
	if err == nil {
		p.q.obs.PutBack(ctx)
	}
	return err
}

// note records that item i is done or put back, for the first time, and reports whether it was the last of the node.
func (p *pulled[T]) note(i int, back bool) (isFirst, isLast bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended[i] {
		return false, false
	}
	p.ended[i] = true
	p.open--
	if back {
		p.back = append(p.back, p.parts[i])
	}
	return true, p.open == 0
}

// rest returns the data of the items to put back after the last one, nil for none.
func (p *pulled[T]) rest() []byte {
	if len(p.back) == 0 {
		return nil
	}
	return p.encodeAgain(p.history, p.back)
}

// giveBackFrom puts back the items from number i, which were not yielded, and reports an error. With a lock, the node
// waits for the items before them.
func (p *pulled[T]) giveBackFrom(i int) {
	if p.Lock == nil {
		if i < len(p.parts) {
			p.q.putAgainInBackground(&claim.Message{Name: p.Name, Data: p.encodeAgain(p.history, p.parts[i:])})
		}
		return
	}
	isLast := false
	for ; i < len(p.items); i++ {
		_, isLast = p.note(i, true)
	}
	if isLast && p.q.unhold(p) {
		p.q.settleInBackground(p.delivery, &claim.Settlement{Back: p.rest()})
		p.end()
	}
}
