package queue

import (
	"context"
	"fmt"
	"runtime/debug"
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
	for i, item := range d.items {
		err := q.call(ctx, item)
		if err == nil {
			continue
		}
		q.reportItem(d.name.whole, d.parts[i], err)
		if q.mode == RequeueOnError { // what was consumed before is not put back
			q.settleInBackground(d, d.parts[i:])
			return
		}
	}
	if d.session != nil {
		q.settleInBackground(d, nil)
	}
}

func (q *queue[T]) settleInBackground(d *delivery[T], back [][]byte) {
	q.settle(d, back, func(err error) {
		if err != nil {
			q.reportItem(d.name.whole, nil, err)
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
			err = fmt.Errorf("queue: panic of the consumer: %v\n%s", p, debug.Stack())
		}
	}()
	return q.consumer(ctx, item)
}
