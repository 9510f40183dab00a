package queue

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// delivery holds the state of the work on a message.
type delivery[T any] struct {
	*claim.Message
	*contents[T]
	info    Info
	history node.History   // in the trailer
	origin  *report.Origin // of the put, nil if it is unknown

	fence      *Fence          // nil without a lock
	ctx        context.Context //nolint:containedctx // of the work
	end        context.CancelFunc
	at         int             // the item that is being consumed
	in         context.Context //nolint:containedctx // the context of that item
	processing *report.Message
}

// deliver starts the work on a message that can be read.
func (q *queue[T]) deliver(m *claim.Message) *delivery[T] {
	info := Info{Path: q.paths.Item(m.Name), Put: time.UnixMilli(m.Stat.Ctime)}
	info.describe(q.kind, m.Name)
	d := &delivery[T]{Message: m, info: info, contents: m.Contents.(*contents[T])}
	d.history, _ = node.HistoryOf(d.trailer)
	d.origin = q.obs.Extract(node.TraceContextOf(d.trailer))
	d.in = context.WithValue(q.working, infoKey{}, d.info)
	if m.Lock == nil {
		d.ctx, d.end = d.in, func() {}
		return d
	}
	ctx, cancel := context.WithCancelCause(d.in)
	stop := context.AfterFunc(m.Lock.Session.Context(), func() { cancel(ErrLockLost) })
	d.fence = newFence(q.paths, m, ctx)
	d.ctx, d.end = context.WithValue(ctx, fenceKey{}, d.fence), func() { stop(); cancel(nil) }
	return d
}

// worker passes items to the consumer, one at a time.
type worker[T any] struct {
	q       *queue[T]
	current *delivery[T] // nil between two of them
}

// errExited is the error of a consumer that ends its goroutine.
var errExited = usercode.Exited("the consumer")

// run passes items to the consumer until the queue is closed.
func (w *worker[T]) run() { usercode.Loop(w.q.workers.Run, w.step) }

// step passes one item to the consumer. It returns false when the queue is closed and no item is left.
func (w *worker[T]) step() (again bool) {
	if d := w.current; d != nil { // the consumer has ended the goroutine of the last step
		w.current = nil
		if w.q.consumed(d, errExited) {
			w.process(d)
		}
		return true
	}
	if m, err := w.q.fetcher.Next(w.q.claiming); err == nil {
		w.process(w.q.deliver(m))
		return true
	}
	m := w.q.fetcher.Drain()
	switch {
	case m == nil:
		return false
	case m.Lock != nil:
		w.q.release(m)
	case w.q.working.Err() != nil: // there is no time for it, and it is no longer in the queue
		w.q.reportItem(w.q.root, m.Name, m.Data, ErrClosed)
	default:
		w.process(w.q.deliver(m))
	}
	return true
}

// process consumes the remaining parts of a delivery. An item with a lock is settled afterwards.
func (w *worker[T]) process(d *delivery[T]) {
	for d.at < len(d.items) {
		d.in, d.processing = w.q.obs.Process(d.ctx, d.origin)
		d.processing.Requeues(d.history.Requeues)
		if d.at == 0 {
			w.q.obs.HandedOver(d.in, d.history.FirstPut(d.info.Put), len(d.items))
		}
		w.current = d
		err := w.q.call(d.in, d.items[d.at])
		w.current = nil
		if !w.q.consumed(d, err) {
			return
		}
	}
	if d.Lock != nil {
		w.q.settleInBackground(d, &claim.Settlement{})
	}
	d.end()
}

// consumed records the result of an item of d, and reports whether to continue with the next.
func (q *queue[T]) consumed(d *delivery[T], err error) bool {
	d.at++
	if err == nil {
		d.processing.End(d.Name.Whole, nil)
		return true
	}
	failed := d.parts[d.at-1]
	if q.mode != RequeueOnError {
		d.processing.End(d.Name.Whole, err)
		q.reportItem(d.in, d.Name, failed, err)
		return true
	}
	defer d.end()
	x, err := q.putBack(d, d.parts[d.at-1:], err) // the parts consumed before are not put back
	d.processing.Requeued(d.Name.Whole, err)
	q.reportItem(d.in, d.Name, failed, err)
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
func (q *queue[T]) putBack(d *delivery[T], parts [][]byte, cause error) (*claim.Settlement, error) {
	if d.ctx.Err() != nil { // the item may not be the cause
		return &claim.Settlement{Back: d.encodeAgain(d.history, parts)}, cause
	}
	h := d.history
	if len(parts) < len(d.parts) { // the failures are those of the first part of d
		h.Failures = 0
	}
	h.Failures++
	if q.maxDeliveries > 0 && h.Failures >= q.maxDeliveries {
		cause = errtext.Wrap(cause, "queue", "moved to the dead letters after %d deliveries", h.Failures)
		_, rest := node.HistoryOf(d.trailer)
		x := &claim.Settlement{}
		x.Dead, _ = node.Encode(rest, parts[0])
		if h.Failures = 0; len(parts) > 1 {
			x.Back = d.encodeAgain(h, parts[1:])
		}
		return x, cause
	}
	back := d.encodeAgain(h, parts)
	return &claim.Settlement{Back: back, After: reply.Doubled(firstFailurePause, maxFailurePause, h.Failures-1)}, cause
}

// encodeAgain returns the data of a node that holds parts of d again, with a history.
func (d *delivery[T]) encodeAgain(h node.History, parts [][]byte) []byte {
	data, _ := node.Encode(node.WithHistory(d.trailer, h.PutBack(d.info.Put)), parts...) // they were read from such bytes
	return data
}

// settleInBackground ends the claim of d with x, and reports an error.
func (q *queue[T]) settleInBackground(d *delivery[T], x *claim.Settlement) {
	ctx := d.in
	q.settle(ctx, d, x, func(err error) { q.reportSettlement(ctx, d.Name, err) })
}

// reportSettlement reports the error of a settlement that no caller waits for.
func (q *queue[T]) reportSettlement(ctx context.Context, n node.Name, err error) {
	if err == nil {
		return
	}
	if errors.Is(err, ErrClosed) {
		q.unsettled.Add(1)
	}
	q.reportItem(ctx, n, nil, err)
}

// settle ends the claim of d with x. The work on d was in the trace of ctx. done is called when the claim has ended.
func (q *queue[T]) settle(ctx context.Context, d *delivery[T], x *claim.Settlement, done func(error)) {
	d.fence.close()
	ctx, settling := q.obs.Settle(ctx)
	x.Message = d.Message
	if settling != nil {
		x.Cause = ctx
	}
	x.Refused = func(err error) { q.reportItem(ctx, d.Name, nil, err) }
	x.Done = func(err error) {
		settling.End(d.Name.Whole, err)
		q.count(ctx, x, err)
		done(err)
	}
	q.settler.Settle(x)
}

// count counts the outcome of an item that was settled with x.
func (q *queue[T]) count(ctx context.Context, x *claim.Settlement, err error) {
	switch {
	case errors.Is(err, ErrLockLost):
		q.obs.ClaimLost(ctx, report.Lost)
		return
	case err != nil, x.Keep:
		return
	}
	if x.Back != nil {
		q.obs.PutBack(ctx)
	}
	if x.Dead != nil {
		q.obs.DeadLettered(ctx)
	}
}

// release returns an item for other consumers: it deletes the lock and keeps the item.
func (q *queue[T]) release(m *claim.Message) {
	q.settler.Settle(&claim.Settlement{Message: m, Keep: true, Done: func(error) {}})
}

// call calls the consumer. It returns a panic as an error, so that the next item is consumed in any case.
func (q *queue[T]) call(ctx context.Context, item T) (err error) {
	defer usercode.Catch("the consumer", &err)
	return q.consumer(ctx, item)
}
