package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// queue is what all kinds of queues share: the items that are put and those that are taken.
type queue[T any] struct {
	client     Client
	consumer   Consumer[T]
	serializer Serializer[T]
	path       string
	options
	kind kind
	told *telemetry.Queue

	producer  *producer
	settler   *settler
	listeners callbacks.Listeners[PutEvent[T]]
	room      *room // nil if the queue is not bounded

	root       context.Context // of requests that nobody's context ends: they are answered, or lost, soon
	taking     context.Context // ends with Close
	stopTaking context.CancelCauseFunc
	working    context.Context // of the consumer
	stopWork   context.CancelCauseFunc
	workers    sync.WaitGroup
	taker      taker[T] // of the consumer
	takes      sync.Mutex

	mu     sync.Mutex
	state  State
	closed chan struct{} // when Close is done
	err    error         // of Close
	held   map[string]*delivery[T]
	spoilt map[string]struct{} // nodes that cannot be read
}

// State is how far the life of a queue is.
type State int

// The states. In Java: State.
const (
	Latent State = iota // not started
	Started
	Closed
)

func newQueue[T any](b Builder[T], k kind) *queue[T] {
	q := &queue[T]{
		client: b.client, consumer: b.consumer, serializer: b.serializer, path: b.path, options: b.options, kind: k,
		closed: make(chan struct{}),
		held:   make(map[string]*delivery[T]),
		spoilt: make(map[string]struct{}),
	}
	if q.onError == nil {
		q.onError = q.tellClient
	}
	q.told = telemetry.Of(q.client).NewQueue(k.recipe, q.name, q.path)
	forever := context.Background() //nolint:forbidigo // those below end with Close
	q.root = telemetry.Untraced(forever)
	q.taking, q.stopTaking = context.WithCancelCause(q.root)
	q.working, q.stopWork = context.WithCancelCause(forever)
	q.producer = newProducer(q.client, q.path, q.window, q.lockPath != "", q.ensure)
	if q.maxItems > 0 {
		q.room = newRoom(q.producer, q.maxItems)
	}
	q.settler = newSettler(q.client, q.path, q.lockPath, q.window)
	q.taker = taker[T]{q: q, most: q.prefetch}
	return q
}

// Start begins to put what is put and, with a consumer, to consume. It does not wait for a connection. It fails with
// [ErrStarted] the second time and with [ErrClosed] after Close. In Java: start.
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
	q.producer.start(q.root)
	q.settler.start(q.root)
	if q.consumer != nil {
		for range q.concurrency {
			q.workers.Go(q.consume)
		}
	}
	return nil
}

// State returns how far the life of the queue is.
func (q *queue[T]) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Close stops taking items, waits for puts that are under way and for the consumer, for the final flush time each, then
// ends the consumer's context and waits for its return; so it must not be called by the consumer. What is taken and not
// consumed stays in the queue if there is a lock path, else it is consumed. The error tells of puts that have failed
// since the last FlushPuts, or had to be given up. Close is idempotent. In Java: close.
func (q *queue[T]) Close() error {
	q.mu.Lock()
	before := q.state
	q.state = Closed
	q.mu.Unlock()
	switch before {
	case Closed:
		<-q.closed
		return q.err
	case Started:
		q.stopTaking(ErrClosed)
		late := time.AfterFunc(q.finalFlush, func() { q.stopWork(ErrClosed) })
		q.err = q.bounded(q.producer.close)
		q.workers.Wait()
		late.Stop()
		q.releaseAll()
		_ = q.bounded(func(ctx context.Context) error { q.settler.close(ctx); return nil })
	}
	q.stopTaking(ErrClosed)
	q.stopWork(ErrClosed)
	close(q.closed)
	return q.err
}

// bounded calls fn with a context that ends after the final flush time.
func (q *queue[T]) bounded(fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(q.root, q.finalFlush)
	defer cancel()
	return fn(ctx)
}

// ensure creates the nodes of the queue, with Java's data and Java's kind of parents.
func (q *queue[T]) ensure(ctx context.Context) error {
	for _, path := range []string{q.path, q.lockPath, q.deadLetters} {
		if path == "" {
			continue
		}
		_, err := q.client.Create().CreatingParentContainersIfNeeded().ForPath(ctx, path, nil)
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// report tells of an error of the background; ctx is that of what has failed.
func (q *queue[T]) report(ctx context.Context, err error) {
	lineup.Tell(context.WithoutCancel(ctx), q.client, q.what(), q.onError, err)
}

func (q *queue[T]) reportItem(ctx context.Context, name string, data []byte, err error) {
	q.report(ctx, &ItemError{Path: zkpath.Join(q.path, name), Data: data, Err: err})
}

func (q *queue[T]) tellClient(ctx context.Context, err error) {
	q.client.ReportUnhandled(ctx, q.what(), err)
}

// what is what the client calls the queue.
func (q *queue[T]) what() string { return "queue " + q.path }

// serialize returns what a node holds with these items, put with ctx.
func (q *queue[T]) serialize(ctx context.Context, items []T) ([]byte, error) {
	parts := make([][]byte, len(items))
	for i, item := range items {
		part, err := q.serializer.Serialize(item)
		if err != nil {
			return nil, errtext.Wrap(err, "queue", "serialize")
		}
		parts[i] = part
	}
	return encodeItems(appendTrailer(nil, q.told.Inject(ctx)), parts...)
}

// deserialize returns the items that a node holds, the bytes of each, and those behind them.
func (q *queue[T]) deserialize(data []byte) (items []T, parts [][]byte, trailer []byte, err error) {
	parts, trailer, err = decodeItems(data)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic of the serializer: %s", ErrCorrupt, errtext.Panic(p))
		}
	}()
	items = make([]T, len(parts))
	for i, part := range parts {
		if items[i], err = q.serializer.Deserialize(part); err != nil {
			return nil, nil, nil, errtext.Join(ErrCorrupt, err)
		}
	}
	return items, parts, trailer, nil
}
