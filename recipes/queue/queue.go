package queue

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/fetch"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/produce"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// queue is the common part of all kinds of queues: it puts items and consumes them.
type queue[T any] struct {
	paths    *node.Paths
	consumer Consumer[T]
	codec    codec.Codec[T]
	options
	kind node.Kind
	obs  report.Queue

	producer  *produce.Producer
	watch     *claim.Watch
	fetcher   *fetch.Fetcher
	settler   *claim.Settler
	listeners listeners.Set[PutEvent[T]]
	room      *produce.Room    // nil if the queue is not bounded
	reports   waitqueue.Serial // the calls of OnError
	cleanups  reply.Goroutines // for ended loops of Items, and items that are put again

	root         context.Context // of requests that no caller's context ends: they are answered, or lost, soon
	life         context.Context // bounds the wait for their answers; it ends when Close has waited long enough
	end          context.CancelFunc
	claiming     context.Context // ends with Close
	stopClaiming context.CancelCauseFunc
	working      context.Context // of the consumer and the put listeners
	stopWork     context.CancelCauseFunc
	workers      reply.Goroutines
	unsettled    atomic.Int64 // items that were consumed, or put back, and not settled

	mu       sync.Mutex
	state    State
	closed   chan struct{}         // closed when Close is done
	endDepth func()                // ends the gauges of the depth
	err      error                 // of Close
	loops    int                   // of Items
	held     map[releaser]struct{} // pulled items that are not done
}

// releaser is an item that can be returned for other consumers.
type releaser interface{ release() }

// State is the state of a queue's life.
type State int

// The states. In Java: State.
const (
	Latent State = iota // not started
	Started
	Closed
)

// State returns the state of the queue.
func (q *queue[T]) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// report calls OnError with an error; ctx is the context of the failed work.
func (q *queue[T]) report(ctx context.Context, err error) {
	ctx = context.WithoutCancel(ctx)
	q.reports.Do(func() { waitqueue.CallErrorHandler(ctx, q.paths.Client, q.label(), q.onError, err) })
}

func (q *queue[T]) reportItem(ctx context.Context, n node.Name, data []byte, err error) {
	q.report(ctx, &ItemError{Path: q.paths.Item(n), Data: data, Err: err})
}

func (q *queue[T]) reportToClient(ctx context.Context, err error) {
	q.paths.Client.ReportUnhandled(ctx, q.label(), err)
}

// label is the queue's name in errors.
func (q *queue[T]) label() string { return "queue " + q.paths.Queue }

// PutEvent is the outcome of a put.
type PutEvent[T any] struct {
	Items []T
	// Path is the path of the node that holds the items.
	Path string
	// Err is nil if the items are in the queue. With [ErrUncertain] they may be.
	Err error
}

// PendingPut is an accepted put, as returned by PutAsync. All methods are safe for concurrent use.
type PendingPut struct{ put produce.Put }

// Done returns a channel that is closed when the outcome is available.
func (x *PendingPut) Done() <-chan struct{} { return x.put.Done() }

// Wait waits for the outcome and returns the path of the node. The error is the error of ctx, or the reason why the
// items are not in the queue: an [*ItemError], with [ErrUncertain] if they may be. FlushPuts reports a failure whether
// or not Wait has returned it.
func (x *PendingPut) Wait(ctx context.Context) (path string, err error) { return x.put.Wait(ctx) }

// AddPutListener adds a listener to the outcomes of puts; remove removes it. The listeners are called with the outcome
// of every put, one at a time, in the order of the outcomes. They run on their own goroutine, and no put waits for
// them: they may put, too, and call FlushPuts and Close. A FlushPuts with the listener's context, on whatever
// goroutine, does not wait for listeners; with another context it waits for its caller. Close does not wait for the
// listener that runs when it is called. The context of a listener has the values of the put's context. It ends when the
// queue is closed, after the wait of Close for the listeners. Events stay in memory while the listeners are too slow.
// In Java: QueuePutListener, which is called for successes alone.
func (q *queue[T]) AddPutListener(fn callbacks.Listener[PutEvent[T]]) (remove func()) {
	return q.listeners.Add(fn)
}

// FlushPuts waits until the outcome of all puts that were accepted before it is available, and the listeners were
// called. The error is the error of ctx, or the failures of puts by any goroutine that no FlushPuts had reported when
// this one began. So with several goroutines that put, one may get the failure of another, and miss its own if another
// has flushed before: PutAsync returns each put's own outcome. In Java: flushPuts.
func (q *queue[T]) FlushPuts(ctx context.Context) error { return q.producer.Flush(ctx) }

// put passes items to the producer.
func (q *queue[T]) put(ctx context.Context, prefix string, items []T) (*PendingPut, error) {
	ctx, sending := q.obs.Send(ctx, len(items))
	data, err := q.encodeItems(ctx, items)
	pending := &PendingPut{put: produce.NewPut(prefix, data)}
	x := &pending.put
	if sending != nil {
		x.Cause, x.Sending = ctx, sending
	}
	x.Ended = func(path string, err error) func() {
		sending.End(zkpath.Node(path), err)
		if q.listeners.Len() == 0 {
			return nil
		}
		return func() {
			ctx := q.producer.MarkListener(listeners.Until(q.working, ctx))
			event := PutEvent[T]{Items: items, Path: path, Err: err}
			q.listeners.Notify(ctx, event, waitqueue.Guard(ctx, q.paths.Client, q.label()))
		}
	}
	if err == nil {
		err = q.accept(ctx, x)
	}
	if err != nil {
		sending.Refused(err)
		return nil, err
	}
	return pending, nil
}

// accept passes x to the producer when there is room in the queue.
func (q *queue[T]) accept(ctx context.Context, x *produce.Put) error {
	switch q.State() {
	case Latent:
		return ErrNotStarted
	case Closed:
		return ErrClosed
	}
	if q.room != nil {
		return q.room.Put(ctx, x)
	}
	return q.producer.Put(ctx, x)
}

// putMulti puts all items in one node, if there are any.
func (q *queue[T]) putMulti(ctx context.Context, prefix string, items []T) error {
	if len(items) == 0 {
		return nil
	}
	_, err := q.put(ctx, prefix, slices.Clone(items)) // listeners use them later
	return err
}

// encodeItems returns the data of a node with these items, put with ctx.
func (q *queue[T]) encodeItems(ctx context.Context, items []T) ([]byte, error) {
	parts := make([][]byte, len(items))
	for i, item := range items {
		part, err := q.codec.Encode(item)
		if err != nil {
			return nil, errtext.Wrap(err, "queue", "encode")
		}
		parts[i] = part
	}
	return node.Encode(node.AppendTrailer(nil, q.obs.Inject(ctx)), parts...)
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
	if c.parts, c.trailer, err = node.Decode(data); err != nil {
		return nil, err
	}
	if c.items, err = q.decodeItems(c.parts); err != nil {
		return nil, errtext.Join(ErrCorrupt, err)
	}
	return c, nil
}

// decodeItems returns the items of a node.
func (q *queue[T]) decodeItems(parts [][]byte) (items []T, err error) {
	defer usercode.Catch("the codec", &err)
	items = make([]T, len(parts))
	for i, part := range parts {
		if items[i], err = q.codec.Decode(part); err != nil {
			return nil, err
		}
	}
	return items, nil
}
