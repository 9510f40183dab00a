package queue

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/fetch"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/produce"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

func newQueue[T any](p node.Paths, k node.Kind, consumer Consumer[T], items codec.Codec[T], o options) *queue[T] {
	q := &queue[T]{
		paths: &p, consumer: consumer, codec: items, options: o, kind: k,
		closed: make(chan struct{}), endDepth: func() {},
		held: make(map[releaser]struct{}),
	}
	if q.onError == nil {
		q.onError = q.reportToClient
	}
	q.obs = report.NewQueue(hook.Telemetry(q.paths.Client), k.Recipe, q.name, q.paths.Queue)
	forever := context.Background() //nolint:forbidigo // those below end with Close
	q.root = telemetry.Untraced(forever)
	q.life, q.end = context.WithCancel(q.root)
	q.claiming, q.stopClaiming = context.WithCancelCause(q.root)
	q.working, q.stopWork = context.WithCancelCause(forever)
	q.producer = produce.New(produce.Config{
		Client: q.paths.Client, Path: q.paths.Queue, Window: q.window, Resend: q.paths.HasLocks(), Ensure: q.paths.Create,
		ItemError: func(data []byte, err error) error { return &ItemError{Path: q.paths.Queue, Data: data, Err: err} },
	})
	if q.maxItems > 0 {
		q.room = produce.NewRoom(q.producer, q.maxItems)
	}
	q.watch = claim.NewWatch(q.paths)
	q.settler = claim.NewSettler(q.paths, q.watch, q.window)
	prefetchLimit := 0 // a loop of Items takes one item at a time
	if q.consumer != nil {
		prefetchLimit = q.prefetch
	}
	q.fetcher = fetch.New(k, q.watch, prefetchLimit, fetch.Handler{
		Decode: q.decode, Corrupt: q.corrupt, Release: q.release,
		ClaimLost: func() { q.obs.ClaimLost(q.root, report.Taken) },
		Report:    q.report, ReportItem: q.reportItem,
	})
	q.fetcher.FailsWithoutChroot = q.consumer == nil
	return q
}

// Start starts the queue: it puts items and, with a consumer, consumes them. It does not wait for a connection. It
// fails with [ErrStarted] the second time, with [ErrClosed] after Close, and with framework.ErrClosed when the client
// is closed. In Java: start.
func (q *queue[T]) Start() error {
	q.obs.Started(q.root)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state {
	case Started:
		return ErrStarted
	case Closed:
		return ErrClosed
	}
	if err := waitqueue.CheckOpen(q.paths.Client); err != nil {
		return errtext.Wrap(err, "queue", "start")
	}
	q.state = Started
	if q.measureDepth {
		q.endDepth = q.obs.ObserveDepth(q.depth)
	}
	q.producer.Start(q.root)
	q.settler.Start(q.life)
	q.fetcher.Start(q.root, q.life)
	if q.consumer != nil {
		for range q.concurrency {
			w := &worker[T]{q: q}
			q.workers.Run(w.run)
		}
	}
	return nil
}

// Close stops taking items. It waits for the puts under way, for the consumer, and until consumed items are settled,
// for the final flush time in all. Then it ends the context of the put listeners and that of the consumer, and waits
// for the consumer's return, ten seconds more at most. So the consumer should not call Close: it would wait for itself
// that long, and the error says so. Items that were taken and not consumed stay in the
// queue if there is a lock path. Without one they are consumed, and reported if there is no time for it.
// The error is about puts that have failed since the last FlushPuts, or had to be given up, and about consumed items
// that are not settled: they may be delivered again. OnError has been called for everything before Close returns,
// except while a call of it that began before Close is still running. Close is idempotent. In Java: close.
func (q *queue[T]) Close() error {
	q.mu.Lock()
	before := q.state
	q.state = Closed
	q.endDepth()
	q.mu.Unlock()
	switch before {
	case Closed:
		<-q.closed
		return q.err
	case Started:
		q.err = q.shutDown(q.reports.Running(), q.producer.Listeners.Running())
	}
	q.stopClaiming(ErrClosed)
	q.stopWork(ErrClosed)
	q.end()
	close(q.closed)
	return q.err
}

// shutDown closes everything that was started. report and listener are the numbers of a call of OnError and of a put
// listener that may be the caller, 0 if there is none.
func (q *queue[T]) shutDown(report, listener int) error {
	ctx, cancel := context.WithTimeout(q.root, q.finalFlush)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		q.stopWork(ErrClosed)
		q.end()
	})
	defer stop()
	q.stopClaiming(ErrClosed)
	q.cleanups.Wait(ctx)
	if q.consumer == nil {
		q.giveBack()
	}
	err := q.producer.Close(ctx, listener)
	if q.room != nil {
		q.room.Close()
	}
	returning, cancelReturning := context.WithTimeout(context.WithoutCancel(ctx), q.finalFlush+lastReturn)
	defer cancelReturning()
	returned := q.workers.Wait(returning)
	q.cleanups.Wait(q.root) // this is soon: puts and life have ended
	q.stopWork(ErrClosed)   // before others get the items
	q.releaseHeld()
	q.settler.Close(ctx)
	q.watch.Remove(q.root)
	reporting, cancelReporting := reply.Outliving(ctx) // about what has failed at the end of ctx
	defer cancelReporting()
	q.reports.Wait(reporting, report)
	if n := q.unsettled.Load(); n > 0 {
		err = errors.Join(err, errtext.Wrap(ErrClosed, "queue", "%d items are not settled, and may be delivered again", n))
	}
	if !returned {
		err = errors.Join(err, errtext.Wrap(ErrClosed, "queue", "a consumer has not returned"))
	}
	return err
}

// lastReturn bounds the wait for a consumer beyond the final flush time, when its context has ended. A consumer that
// calls Close cannot return before.
const lastReturn = 10 * time.Second
