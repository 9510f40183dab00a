package queue

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
)

// consume gives items to the consumer, one at a time, until the queue is closed.
func (q *queue[T]) consume() {
	for {
		d, err := q.take()
		if err != nil {
			break
		}
		q.process(d)
	}
	for _, d := range q.closeTaker() {
		if d.session != nil {
			q.release(d)
			continue
		}
		q.process(d) // it is in the queue no longer
	}
}

// take takes the next item, for one worker after the other.
func (q *queue[T]) take() (*delivery[T], error) {
	q.takes.Lock()
	defer q.takes.Unlock()
	return q.taker.next(q.taking)
}

func (q *queue[T]) closeTaker() []*delivery[T] {
	q.takes.Lock()
	defer q.takes.Unlock()
	return q.taker.close()
}

// process consumes a delivery. With a lock it is settled then.
func (q *queue[T]) process(d *delivery[T]) {
	ctx, cancel := q.workOn(d)
	defer cancel()
	q.told.HandedOver(ctx, d.info.Put, len(d.items))
	in := ctx // of the last item
	for i, item := range d.items {
		var processing *telemetry.Message
		in, processing = q.told.Process(ctx, d.origin)
		err := q.call(in, item)
		if err == nil {
			processing.End(d.name.whole, nil)
			continue
		}
		if q.mode == RequeueOnError { // what was consumed before is not put back
			processing.Requeued(d.name.whole, err)
			q.reportItem(in, d.name.whole, d.parts[i], err)
			q.settleInBackground(in, d, d.parts[i:])
			return
		}
		processing.End(d.name.whole, err)
		q.reportItem(in, d.name.whole, d.parts[i], err)
	}
	if d.session != nil {
		q.settleInBackground(in, d, nil)
	}
}

func (q *queue[T]) settleInBackground(ctx context.Context, d *delivery[T], back [][]byte) {
	q.settle(ctx, d, back, func(err error) {
		if err != nil {
			q.reportItem(ctx, d.name.whole, nil, err)
		}
	})
}

// workOn returns the context for the work on a delivery.
func (q *queue[T]) workOn(d *delivery[T]) (context.Context, context.CancelFunc) {
	ctx := context.WithValue(q.working, infoKey{}, d.info)
	if d.session == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.session.Context(), func() { cancel(ErrLockLost) })
	return ctx, func() { stop(); cancel(nil) }
}

// call calls the consumer; a panic is an error, so that the next item is consumed whatever happens.
func (q *queue[T]) call(ctx context.Context, item T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("queue: panic of the consumer: %s\n%s", errtext.Panic(p), debug.Stack())
		}
	}()
	return q.consumer(ctx, item)
}
