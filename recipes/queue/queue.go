package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// queue is the common part of all kinds of queues: it puts items and consumes them.
type queue[T any] struct {
	*place
	consumer   Consumer[T]
	serializer Serializer[T]
	options
	kind kind
	obs  telemetry.Queue

	producer   *producer
	watch      *queueWatch
	fetcher    *fetcher
	settler    *settler
	listeners  listeners.Set[PutEvent[T]]
	room       *room            // nil if the queue is not bounded
	reports    waitqueue.Serial // the calls of OnError
	background background       // cleanup for ended loops of Items, and items that are put again

	root       context.Context // of requests that no caller's context ends: they are answered, or lost, soon
	life       context.Context // bounds the wait for their answers; it ends when Close has waited long enough
	end        context.CancelFunc
	taking     context.Context // ends with Close
	stopTaking context.CancelCauseFunc
	working    context.Context // of the consumer
	stopWork   context.CancelCauseFunc
	workers    sync.WaitGroup
	unsettled  atomic.Int64 // items that were consumed, or put back, and not settled

	mu     sync.Mutex
	state  State
	closed chan struct{} // closed when Close is done
	unseen func()        // ends the gauges of the depth
	err    error         // of Close
	loops  int           // of Items
	held   map[*pulled[T]]struct{}
}

// State is the state of a queue's life.
type State int

// The states. In Java: State.
const (
	Latent State = iota // not started
	Started
	Closed
)

func newQueue[T any](p place, k kind, consumer Consumer[T], serializer Serializer[T], o options) *queue[T] {
	q := &queue[T]{
		place: &p, consumer: consumer, serializer: serializer, options: o, kind: k,
		closed: make(chan struct{}), unseen: func() {},
		held: make(map[*pulled[T]]struct{}),
	}
	if q.onError == nil {
		q.onError = q.reportToClient
	}
	q.obs = telemetry.Of(q.client).NewQueue(k.recipe, q.name, q.path)
	forever := context.Background() //nolint:forbidigo // those below end with Close
	q.root = telemetry.Untraced(forever)
	q.life, q.end = context.WithCancel(q.root)
	q.taking, q.stopTaking = context.WithCancelCause(q.root)
	q.working, q.stopWork = context.WithCancelCause(forever)
	q.producer = newProducer(q.client, q.path, q.window, q.lockPath != "", q.ensure)
	if q.maxItems > 0 {
		q.room = newRoom(q.producer, q.maxItems)
	}
	q.watch = newQueueWatch(q.place)
	q.settler = newSettler(q.place, q.watch, q.window)
	prefetchLimit := 0 // a loop of Items takes one item at a time
	if q.consumer != nil {
		prefetchLimit = q.prefetch
	}
	q.fetcher = newFetcher(k, q.watch, prefetchLimit, q)
	return q
}

// Start starts the queue: it puts items and, with a consumer, consumes them. It does not wait for a connection. It
// fails with [ErrStarted] the second time and with [ErrClosed] after Close. In Java: start.
func (q *queue[T]) Start() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state {
	case Started:
		return ErrStarted
	case Closed:
		return ErrClosed
	}
	q.state = Started
	if q.measureDepth {
		q.unseen = q.obs.ObserveDepth(q.depth)
	}
	q.producer.start(q.root)
	q.settler.start(q.life)
	q.fetcher.start(q.root, q.life)
	if q.consumer != nil {
		for range q.concurrency {
			w := &worker[T]{q: q}
			q.workers.Go(w.run)
		}
	}
	return nil
}

// State returns the state of the queue.
func (q *queue[T]) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Close stops taking items. It waits for the puts under way, for the consumer, and until consumed items are settled,
// for the final flush time in all. Then it ends the consumer's context and waits for its return, so the consumer must
// not call Close. Items that were taken and not consumed stay in the queue if there is a lock path. Without one they
// are consumed, or put back for others while the consumer takes long. The error is about puts that have failed since
// the last FlushPuts, or had to be given up, and about consumed items that are not settled: they may be delivered
// again. OnError has been called for everything before Close returns, except while a call of it that began before Close
// is still running. Close is idempotent. In Java: close.
func (q *queue[T]) Close() error {
	q.mu.Lock()
	before := q.state
	q.state = Closed
	q.unseen()
	q.mu.Unlock()
	switch before {
	case Closed:
		<-q.closed
		return q.err
	case Started:
		q.err = q.shutDown(q.reports.Running())
	}
	q.stopTaking(ErrClosed)
	q.stopWork(ErrClosed)
	q.end()
	close(q.closed)
	return q.err
}

// shutDown closes everything that was started. report is the number of a call of OnError that may be the caller, 0 if
// there is none.
func (q *queue[T]) shutDown(report int) error {
	ctx, cancel := context.WithTimeout(q.root, q.finalFlush)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		q.stopWork(ErrClosed)
		q.end()
	})
	defer stop()
	q.stopTaking(ErrClosed)
	q.background.wait(ctx)
	if q.consumer == nil {
		q.giveBack()
	}
	err := q.producer.close(ctx)
	if q.room != nil {
		q.room.close()
	}
	q.workers.Wait()
	q.background.wait(q.root) // this is soon: puts and life have ended
	q.stopWork(ErrClosed)     // before others get the items
	q.releaseHeld()
	q.settler.close(ctx)
	q.watch.remove(q.root)
	reporting, cancelReporting := outliving(ctx) // about what has failed at the end of ctx
	defer cancelReporting()
	q.reports.Wait(reporting, report)
	if n := q.unsettled.Load(); n > 0 {
		err = errors.Join(err, errtext.Wrap(ErrClosed, "queue", "%d items are not settled, and may be delivered again", n))
	}
	return err
}

// report calls OnError with an error; ctx is the context of the failed work.
func (q *queue[T]) report(ctx context.Context, err error) {
	ctx = context.WithoutCancel(ctx)
	q.reports.Do(func() { waitqueue.CallErrorHandler(ctx, q.client, q.label(), q.onError, err) })
}

func (q *queue[T]) reportItem(ctx context.Context, n nodeName, data []byte, err error) {
	q.report(ctx, &ItemError{Path: q.node(n), Data: data, Err: err})
}

func (q *queue[T]) reportToClient(ctx context.Context, err error) {
	q.client.ReportUnhandled(ctx, q.label(), err)
}

// label is the queue's name in errors.
func (q *queue[T]) label() string { return "queue " + q.path }

// serialize returns the data of a node with these items, put with ctx.
func (q *queue[T]) serialize(ctx context.Context, items []T) ([]byte, error) {
	parts := make([][]byte, len(items))
	for i, item := range items {
		part, err := q.serializer.Serialize(item)
		if err != nil {
			return nil, errtext.Wrap(err, "queue", "serialize")
		}
		parts[i] = part
	}
	return encodeItems(appendTrailer(nil, q.obs.Inject(ctx)), parts...)
}

// contents are what a node holds.
type contents[T any] struct {
	items   []T
	parts   [][]byte // the bytes of each
	trailer []byte   // the bytes behind the parts
}

// decode returns the *contents of a node.
func (q *queue[T]) decode(data []byte) (_ any, err error) {
	c := &contents[T]{}
	if c.parts, c.trailer, err = decodeItems(data); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic of the serializer: %s", ErrCorrupt, errtext.Panic(p))
		}
	}()
	c.items = make([]T, len(c.parts))
	for i, part := range c.parts {
		if c.items[i], err = q.serializer.Deserialize(part); err != nil {
			return nil, errtext.Join(ErrCorrupt, err)
		}
	}
	return c, nil
}
