package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
)

// delivery holds the state of the work on a message.
type delivery[T any] struct {
	*message
	*contents[T]
	info    Info
	history history           // in the trailer
	origin  *telemetry.Origin // of the put, nil if it is unknown

	fence      *Fence          // nil without a lock
	ctx        context.Context //nolint:containedctx // of the work
	end        context.CancelFunc
	at         int             // the item that is being consumed
	in         context.Context //nolint:containedctx // the context of that item
	processing *telemetry.Message
}

// deliver starts the work on a message that can be read.
func (q *queue[T]) deliver(m *message) *delivery[T] {
	info := Info{Path: q.node(m.name), Put: time.UnixMilli(m.stat.Ctime)}
	q.kind.describe(&info, m.name)
	d := &delivery[T]{message: m, info: info, contents: m.contents.(*contents[T])}
	d.history, _ = historyOf(d.trailer)
	d.origin = q.obs.Extract(traceContextOf(d.trailer))
	d.in = context.WithValue(q.working, infoKey{}, d.info)
	if m.lock == nil {
		d.ctx, d.end = d.in, func() {}
		return d
	}
	ctx, cancel := context.WithCancelCause(d.in)
	stop := context.AfterFunc(m.lock.session.Context(), func() { cancel(ErrLockLost) })
	d.fence = newFence(q.place, m, ctx)
	d.ctx, d.end = context.WithValue(ctx, fenceKey{}, d.fence), func() { stop(); cancel(nil) }
	return d
}

// worker passes items to the consumer, one at a time.
type worker[T any] struct {
	q       *queue[T]
	current *delivery[T] // nil between two of them
}

// errExited is the error of a consumer that ends its goroutine with runtime.Goexit, as a failing test does.
var errExited = errors.New("queue: the consumer has ended its goroutine")

// run passes items to the consumer until the queue is closed.
func (w *worker[T]) run() {
	ended := false
	defer func() {
		if !ended { // another goroutine continues
			w.q.workers.Go(w.run)
		}
	}()
	if d := w.current; d != nil {
		w.current = nil
		if w.q.consumed(d, errExited) {
			w.process(d)
		}
	}
	for {
		m, err := w.q.fetcher.next(w.q.taking)
		if err != nil {
			break
		}
		w.process(w.q.deliver(m))
	}
	for m := w.q.fetcher.drain(); m != nil; m = w.q.fetcher.drain() {
		switch {
		case m.lock != nil:
			w.q.release(m)
		case w.q.working.Err() != nil: // there is no time for it, and it is no longer in the queue
			w.q.reportItem(w.q.root, m.name, m.data, ErrClosed)
		default:
			w.process(w.q.deliver(m))
		}
	}
	ended = true
}

// process consumes the remaining parts of a delivery. An item with a lock is settled afterwards.
func (w *worker[T]) process(d *delivery[T]) {
	for d.at < len(d.items) {
		d.in, d.processing = w.q.obs.Process(d.ctx, d.origin)
		d.processing.Requeues(d.history.requeues)
		if d.at == 0 {
			w.q.obs.HandedOver(d.in, d.history.firstPut(d.info.Put), len(d.items))
		}
		w.current = d
		err := w.q.call(d.in, d.items[d.at])
		w.current = nil
		if !w.q.consumed(d, err) {
			return
		}
	}
	if d.lock != nil {
		w.q.settleInBackground(d, &settlement{})
	}
	d.end()
}

// consumed records the result of an item of d, and reports whether to continue with the next.
func (q *queue[T]) consumed(d *delivery[T], err error) bool {
	d.at++
	if err == nil {
		d.processing.End(d.name.whole, nil)
		return true
	}
	failed := d.parts[d.at-1]
	if q.mode != RequeueOnError {
		d.processing.End(d.name.whole, err)
		q.reportItem(d.in, d.name, failed, err)
		return true
	}
	defer d.end()
	x, err := q.putBack(d, d.parts[d.at-1:], err) // the parts consumed before are not put back
	d.processing.Requeued(d.name.whole, err)
	q.reportItem(d.in, d.name, failed, err)
	q.settleInBackground(d, x)
	return false
}

// The pauses of an item after its consumer has failed.
const (
	firstFailurePause = 10 * time.Millisecond
	maxFailurePause   = 10 * time.Second
)

// putBack returns the settlement that puts the parts of d back because of cause. If the first has failed too often, it
// is put into the dead letters.
func (q *queue[T]) putBack(d *delivery[T], parts [][]byte, cause error) (*settlement, error) {
	if d.ctx.Err() != nil { // the item may not be the cause
		return &settlement{back: d.encodeAgain(d.history, parts)}, cause
	}
	h := d.history
	if len(parts) < len(d.parts) { // the failures are those of the first part of d
		h.failures = 0
	}
	h.failures++
	if q.maxDeliveries > 0 && h.failures >= q.maxDeliveries {
		cause = errtext.Wrap(cause, "queue", "moved to the dead letters after %d deliveries", h.failures)
		_, rest := historyOf(d.trailer)
		x := &settlement{}
		x.dead, _ = encodeItems(rest, parts[0])
		if h.failures = 0; len(parts) > 1 {
			x.back = d.encodeAgain(h, parts[1:])
		}
		return x, cause
	}
	back := d.encodeAgain(h, parts)
	return &settlement{back: back, after: doubled(firstFailurePause, maxFailurePause, h.failures-1)}, cause
}

// encodeAgain returns the data of a node that holds parts of d again, with a history.
func (d *delivery[T]) encodeAgain(h history, parts [][]byte) []byte {
	data, _ := encodeItems(withHistory(d.trailer, h.putBack(d.info.Put)), parts...) // they were read from such bytes
	return data
}

// settleInBackground ends the claim of d with x, and reports an error.
func (q *queue[T]) settleInBackground(d *delivery[T], x *settlement) {
	ctx := d.in
	q.settle(ctx, d, x, func(err error) { q.reportSettlement(ctx, d.name, err) })
}

// reportSettlement reports the error of a settlement that no caller waits for.
func (q *queue[T]) reportSettlement(ctx context.Context, n nodeName, err error) {
	if err == nil {
		return
	}
	if errors.Is(err, ErrClosed) {
		q.unsettled.Add(1)
	}
	q.reportItem(ctx, n, nil, err)
}

// settle ends the claim of d with x. The work on d was in the trace of ctx. done is called when the claim has ended.
func (q *queue[T]) settle(ctx context.Context, d *delivery[T], x *settlement, done func(error)) {
	d.fence.close()
	ctx, settling := q.obs.Settle(ctx)
	x.m = d.message
	if settling != nil {
		x.cause = ctx
	}
	x.refused = func(err error) { q.reportItem(ctx, d.name, nil, err) }
	x.done = func(err error) {
		settling.End(d.name.whole, err)
		q.count(ctx, x, err)
		done(err)
	}
	q.settler.settle(x)
}

// count counts the outcome of an item that was settled with x.
func (q *queue[T]) count(ctx context.Context, x *settlement, err error) {
	switch {
	case errors.Is(err, ErrLockLost):
		q.obs.ClaimLost(ctx, telemetry.Lost)
		return
	case err != nil, x.keep:
		return
	}
	if x.back != nil {
		q.obs.PutBack(ctx)
	}
	if x.dead != nil {
		q.obs.DeadLettered(ctx)
	}
}

func (q *queue[T]) claimLost() { q.obs.ClaimLost(q.root, telemetry.Taken) }

// release returns an item for other consumers: it deletes the lock and keeps the item.
func (q *queue[T]) release(m *message) {
	q.settler.settle(&settlement{m: m, keep: true, done: func(error) {}})
}

// call calls the consumer. It returns a panic as an error, so that the next item is consumed in any case.
func (q *queue[T]) call(ctx context.Context, item T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("queue: panic of the consumer: %s\n%s", errtext.Panic(p), debug.Stack())
		}
	}()
	return q.consumer(ctx, item)
}
