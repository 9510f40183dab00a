package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// SimpleDistributedQueue is a queue of bytes, the same as the queue among ZooKeeper's own recipes. Each element goes to
// one caller, in the order in which the elements were offered. There is nothing to start or to close. All methods are
// safe for concurrent use. Calls of one value share their state of the queue, so that they cost less than calls of
// several values.
//
// While there is no connection the methods wait for one, for as long as ctx lasts. No element is put, or returned,
// twice. After the end of ctx a method waits up to a second for the answer to a request under way. If no answer
// arrives, or the connection is lost, the error wraps [ErrUncertain]. An error about the removal of an element is an
// [*ItemError] with its bytes, which may be in no queue any more.
//
// The queue is watched until a second after the last call that removes an element or reads one.
//
// An unreadable element stays the first, and all methods but Offer return its error. In Java: SimpleDistributedQueue.
type SimpleDistributedQueue struct {
	client  Client
	path    string
	err     error // of an invalid path
	name    string
	obs     telemetry.Queue
	fetcher *elementFetcher
}

// NewSimpleDistributedQueue returns the queue of a path. It does no I/O. All methods return an error if the path is
// invalid.
func NewSimpleDistributedQueue(client Client, path string, opts ...SimpleOption) *SimpleDistributedQueue {
	q := &SimpleDistributedQueue{client: client, path: path, fetcher: newElementFetcher(client, path)}
	if err := zkpath.Validate(path, false); err != nil {
		q.err = errtext.Wrap(err, "queue", "")
	}
	for _, o := range opts {
		o.applySimple(q)
	}
	q.obs = telemetry.Of(client).NewQueue("simple_queue", q.name, path)
	q.fetcher.obs = &q.obs
	return q
}

// SimpleOption changes a default of a [SimpleDistributedQueue].
type SimpleOption interface {
	applySimple(*SimpleDistributedQueue)
}

type simpleName string

func (o simpleName) applySimple(q *SimpleDistributedQueue) { q.name = string(o) }

// WithName sets the name of a [SimpleDistributedQueue] in spans and metrics; see [Builder.Name] for the others.
func WithName(name string) SimpleOption { return simpleName(name) }

// Offer puts an element, which may be empty, behind the others. In Java: offer.
func (q *SimpleDistributedQueue) Offer(ctx context.Context, data []byte) error {
	if q.err != nil {
		return q.err
	}
	if data == nil {
		data = []byte{} // nil is the default data of the client
	}
	ctx, sending := q.obs.Send(telemetry.Of(q.client).ExpectingErrors(ctx), 1)
	name, err := q.offer(ctx, data)
	if err != nil && !errors.Is(err, ErrUncertain) {
		sending.Refused(err)
	} else {
		sending.End(name, err)
	}
	return err
}

// offer returns the name of the element's node.
func (q *SimpleDistributedQueue) offer(ctx context.Context, data []byte) (name string, err error) {
	path := zkpath.Join(q.path, elementName)
	create := q.client.Create().WithMode(builders.PersistentSequential)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		created, err := answer(ctx, create.Submit(once(ctx), path, data))
		switch {
		case err == nil:
			return zkpath.Node(created), nil
		case errors.Is(err, zk.ErrNoNode): // no parents, so that a lost connection leaves open as little as possible
			if err = q.fetcher.ensure(ctx); err == nil {
				continue
			}
		case isUncertain(ctx, err):
			return "", &ItemError{Path: q.path, Err: errtext.Join(ErrUncertain, err)}
		}
		if waitqueue.IsOutage(err) {
			err = waitqueue.AwaitConnection(ctx, q.client)
		}
		if err != nil {
			return "", err
		}
	}
}

// Poll removes the first element and returns it; nil if there is none. In Java: poll().
func (q *SimpleDistributedQueue) Poll(ctx context.Context) ([]byte, error) {
	return q.take(&call{ctx: ctx, waitCtx: ctx})
}

// PollFor works like Poll, but waits for an element up to wait; nil then. In Java: poll(timeout, unit).
func (q *SimpleDistributedQueue) PollFor(ctx context.Context, wait time.Duration) ([]byte, error) {
	if wait <= 0 {
		return q.Poll(ctx)
	}
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	data, err := q.take(&call{ctx: ctx, waitCtx: waitCtx, waits: true})
	var about *ItemError
	if waitCtx.Err() != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !errors.As(err, &about) {
		return nil, nil // the end of wait
	}
	return data, err
}

// Take works like Poll, but waits for an element. In Java: take.
func (q *SimpleDistributedQueue) Take(ctx context.Context) ([]byte, error) {
	return q.take(&call{ctx: ctx, waitCtx: ctx, waits: true})
}

// Remove works like Poll, but fails with [ErrEmpty] if there is no element. In Java: remove.
func (q *SimpleDistributedQueue) Remove(ctx context.Context) ([]byte, error) {
	return orEmpty(q.Poll(ctx))
}

// Peek returns the first element without removing it; nil if there is none. In Java: peek.
func (q *SimpleDistributedQueue) Peek(ctx context.Context) ([]byte, error) {
	if q.err != nil {
		return nil, q.err
	}
	e, err := q.fetcher.peek(&call{ctx: ctx, waitCtx: ctx, began: time.Now()})
	if e == nil {
		return nil, err
	}
	return e.data(), nil
}

// Element works like Peek, but fails with [ErrEmpty] if there is no element. In Java: element.
func (q *SimpleDistributedQueue) Element(ctx context.Context) ([]byte, error) {
	return orEmpty(q.Peek(ctx))
}

func orEmpty(data []byte, err error) ([]byte, error) {
	if data == nil && err == nil {
		return nil, ErrEmpty
	}
	return data, err
}

// take removes the first element.
func (q *SimpleDistributedQueue) take(c *call) ([]byte, error) {
	if q.err != nil {
		return nil, q.err
	}
	caller, started := c.ctx, q.obs.Clock()
	c.ctx = telemetry.Of(q.client).WithoutSpans(c.ctx)
	e, err := q.fetcher.take(c)
	if e == nil {
		return nil, err
	}
	received := q.obs.Received(caller, started, 1, nil)
	q.obs.HandedOver(received, time.UnixMilli(e.claim.stat.Ctime), 1)
	return e.data(), nil
}
