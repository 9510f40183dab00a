package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// SimpleDistributedQueue is a queue of bytes, the same as the queue among ZooKeeper's own recipes. Each element goes to
// one caller, in the order in which the elements were offered. There is nothing to start or to close. All methods are
// safe for concurrent use. Each call that removes an element or reads one lists the whole queue. So does, after each
// change, each call that waits for an element: let few wait, or use a [DistributedQueue] of [Bytes].
//
// While there is no connection the methods wait for one, for as long as ctx lasts. No element is put, or returned,
// twice. After the end of ctx a method waits up to a second for the answer to a request under way. If no answer
// arrives, or the connection is lost, the error wraps [ErrUncertain]. An error about the removal of an element is an
// [*ItemError] with its bytes, which may be in no queue any more.
//
// An unreadable element stays the first, and all methods but Offer return its error. Without its chroot all methods
// return framework.ErrNoChroot. In Java: SimpleDistributedQueue.
type SimpleDistributedQueue struct {
	paths *node.Paths
	err   error // of an invalid path
	name  string
	turn  chan struct{} // held by the call that looks at the queue

	isSlower atomic.Bool // others have taken the last element that was offered
	obs      report.Queue
}

// NewSimpleDistributedQueue returns the queue of a path. It does no I/O. All methods return an error if the path is
// invalid.
func NewSimpleDistributedQueue(client *framework.Client, path string, opts ...SimpleOption) *SimpleDistributedQueue {
	p := &node.Paths{Client: client, Queue: path}
	q := &SimpleDistributedQueue{paths: p, turn: make(chan struct{}, 1)}
	if err := zkpath.Validate(path, false); err != nil {
		q.err = errtext.Wrap(err, "queue", "")
	}
	for _, o := range opts {
		o.applySimple(q)
	}
	q.obs = report.NewQueue(hook.Telemetry(client), "simple_queue", q.name, path)
	return q
}

// SimpleOption changes a default of a [SimpleDistributedQueue].
type SimpleOption interface{ applySimple(*SimpleDistributedQueue) }

type simpleOption func(*SimpleDistributedQueue)

func (o simpleOption) applySimple(q *SimpleDistributedQueue) { o(q) }

// WithName sets the name of a [SimpleDistributedQueue] in spans and metrics; see [Builder.Name] for the others.
func WithName(name string) SimpleOption {
	return simpleOption(func(q *SimpleDistributedQueue) { q.name = name })
}

// Offer puts an element, which may be empty, behind the others. In Java: offer.
func (q *SimpleDistributedQueue) Offer(ctx context.Context, data []byte) error {
	if q.err != nil {
		return q.err
	}
	if data == nil {
		data = []byte{} // nil is the default data of the client
	}
	ctx, sending := q.obs.Send(hook.Telemetry(q.paths.Client).ExpectingErrors(ctx), 1)
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
	path := zkpath.Join(q.paths.Queue, node.ElementPrefix)
	create := q.paths.Client.Create().WithMode(builders.PersistentSequential)
	for missing := 0; ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		created, err := reply.Get(ctx, create.Submit(reply.Once(ctx), path, data))
		switch {
		case err == nil:
			return zkpath.Node(created), nil
		case errors.Is(err, zk.ErrNoNode): // no parents, so that a lost connection leaves open as little as possible
			if err = q.ensure(ctx, missing); err == nil {
				missing++
				continue
			}
		case reply.IsUncertain(ctx, err):
			return "", &ItemError{Path: q.paths.Queue, Err: errtext.Join(ErrUncertain, err)}
		}
		if waitqueue.IsPassing(err) {
			err = waitqueue.AwaitConnection(ctx, q.paths.Client)
		}
		if err != nil {
			return "", err
		}
	}
}

// ensure creates the missing nodes of the path. It pauses first if another client has deleted those of earlier calls.
func (q *SimpleDistributedQueue) ensure(ctx context.Context, calls int) error {
	if calls > 0 && waitqueue.Pause(ctx, waitqueue.OutagePause) != nil {
		return ctx.Err()
	}
	exists := q.paths.Client.CheckExists().CreatingParentContainersIfNeeded()
	_, err := exists.ForPath(builders.Pipelined(ctx), zkpath.Join(q.paths.Queue, node.ElementPrefix))
	return err
}

// Poll removes the first element and returns it; nil if there is none. In Java: poll().
func (q *SimpleDistributedQueue) Poll(ctx context.Context) ([]byte, error) {
	return q.take(&simpleCall{ctx: ctx, waiting: ctx})
}

// PollFor works like Poll, but waits for an element up to wait; nil then. In Java: poll(timeout, unit).
func (q *SimpleDistributedQueue) PollFor(ctx context.Context, wait time.Duration) ([]byte, error) {
	if wait <= 0 {
		return q.Poll(ctx)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	data, err := q.take(&simpleCall{ctx: ctx, waiting: waiting, waits: true})
	var about *ItemError
	if waiting.Err() != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !errors.As(err, &about) {
		return nil, nil // the end of wait
	}
	return data, err
}

// Take works like Poll, but waits for an element. In Java: take.
func (q *SimpleDistributedQueue) Take(ctx context.Context) ([]byte, error) {
	return q.take(&simpleCall{ctx: ctx, waiting: ctx, waits: true})
}

// Remove works like Poll, but fails with [ErrEmpty] if there is no element. In Java: remove.
func (q *SimpleDistributedQueue) Remove(ctx context.Context) ([]byte, error) {
	return orEmpty(q.Poll(ctx))
}

// Peek returns the first element without removing it; nil if there is none. In Java: peek.
func (q *SimpleDistributedQueue) Peek(ctx context.Context) ([]byte, error) {
	e, err := q.first(&simpleCall{ctx: ctx, waiting: ctx}, q.read)
	return e.bytes(), err
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
func (q *SimpleDistributedQueue) take(c *simpleCall) ([]byte, error) {
	caller, started := c.ctx, q.obs.Clock()
	c.ctx = hook.Telemetry(q.paths.Client).WithoutSpans(c.ctx)
	e, err := q.first(c, q.remove)
	if e == nil || err != nil {
		return nil, err
	}
	received := q.obs.Received(caller, started, 1, nil)
	q.obs.HandedOver(received, time.UnixMilli(e.claim.Stat.Ctime), 1)
	return e.bytes(), nil
}

// simpleCall is one call of a method of a simple queue that wants the first element.
type simpleCall struct {
	ctx     context.Context
	waiting context.Context // bounds the wait for an element, and for a connection
	waits   bool            // for an element
}

// element is an element of a simple queue that is being read or removed.
type element struct {
	claim  *claim.DeleteClaim
	newest int64 // zxid of the list that has its name: the element is not younger
}

// anyBytes decodes nothing: an element is the bytes of its node.
func anyBytes([]byte) (any, error) { return nil, nil } //nolint:nilnil // there is no error

// bytes returns the bytes of e, which are not nil, or nil if there is no e.
func (e *element) bytes() []byte {
	switch {
	case e == nil:
		return nil
	case e.claim.Data == nil:
		return []byte{}
	}
	return e.claim.Data
}

func (e *element) error(err error) error {
	return &ItemError{Path: e.claim.Paths.Item(e.claim.Name), Data: e.claim.Data, Err: err}
}

// first calls use with the first element, and with the next while use fails with errTaken. It lists the queue again
// after errChanged. It returns nil if there is no element and the call does not wait for one.
func (q *SimpleDistributedQueue) first(c *simpleCall, use func(*simpleCall, *element) error) (*element, error) {
	if q.err != nil {
		return nil, q.err
	}
	var watcher *callbacks.Watcher // set when the queue was empty
	changed, isChanged := make(chan zk.Event, 1), false
	for {
		e, isEmpty, err := q.look(c, watcher, use)
		var about *ItemError
		switch {
		case errors.As(err, &about): // also one whose deletion passes: the element may be ours
			return nil, err
		case waitqueue.IsPassing(err):
			err = waitqueue.AwaitConnection(c.waiting, q.paths.Client)
		case errors.Is(err, node.ErrChanged):
			err = nil
		case e != nil, err != nil, isEmpty && !c.waits:
			return e, err
		case isEmpty && watcher == nil: // the next list sets a watch
			watcher = callbacks.NewChanWatcher(changed)
			defer waitqueue.Unwatch(context.WithoutCancel(c.ctx), q.paths.Client, watcher, q.paths.Queue)
		case isEmpty:
			if isChanged {
				q.isSlower.Store(true)
			}
			select {
			case <-changed:
				isChanged = true
				q.leaveToOthers(c)
			case <-c.waiting.Done():
				err = c.waiting.Err()
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// slowerPause bounds the random pause of calls that were slower than others.
const slowerPause = 50 * time.Millisecond

// leaveToOthers pauses before the queue is listed after a change, if others were faster the last time. So one of many
// calls that wait takes a new element, and the others find the queue empty.
func (q *SimpleDistributedQueue) leaveToOthers(c *simpleCall) {
	if q.isSlower.Load() {
		_ = waitqueue.Pause(c.waiting, rand.N(slowerPause)) // at its end the queue is listed once more
	}
}

// look lists the queue once. It returns the element that was used, and reports whether there was none. The calls of one
// value look one after the other, so that they do not compete for the first element.
func (q *SimpleDistributedQueue) look(
	c *simpleCall, watcher *callbacks.Watcher, use func(*simpleCall, *element) error,
) (used *element, isEmpty bool, err error) {
	if err := c.ctx.Err(); err != nil {
		return nil, false, err
	}
	select {
	case q.turn <- struct{}{}:
	default:
		select {
		case q.turn <- struct{}{}:
		case <-c.waiting.Done():
			return nil, false, c.waiting.Err()
		}
	}
	defer func() { <-q.turn }()
	elements, err := q.list(c.ctx, watcher)
	if err != nil {
		return nil, false, err
	}
	for _, e := range elements {
		err := use(c, e)
		if !errors.Is(err, node.ErrTaken) && err != nil {
			return nil, false, err
		}
		q.isSlower.Store(err != nil)
		if err == nil {
			return e, false, nil
		}
	}
	return nil, len(elements) == 0, nil
}

// list returns the elements in their order. With a watcher it creates a missing path, so that there is something to
// watch.
func (q *SimpleDistributedQueue) list(ctx context.Context, watcher *callbacks.Watcher) ([]*element, error) {
	flight := builders.Pipelined(ctx)
	list := q.paths.Client.GetChildren()
	if watcher != nil {
		list = list.UsingWatcher(watcher)
	}
	var stat zk.Stat
	children, err := list.StoringStatIn(&stat).ForPath(flight, q.paths.Queue)
	for calls := 0; errors.Is(err, zk.ErrNoNode) && watcher != nil; calls++ {
		if err = q.ensure(ctx, calls); err != nil {
			return nil, err
		}
		children, err = list.StoringStatIn(&stat).ForPath(flight, q.paths.Queue)
	}
	if errors.Is(err, zk.ErrNoNode) { // the queue is empty, unless there is no chroot
		return nil, waitqueue.CheckChroot(flight, q.paths.Client)
	}
	if err != nil {
		return nil, err
	}
	var names []node.Name
	for _, child := range children {
		if n, found := node.ParseElement(child); found {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, node.ByNumber)
	elements := make([]*element, len(names))
	for i, n := range names {
		elements[i] = &element{
			claim:  &claim.DeleteClaim{Paths: q.paths, Name: n, Decode: anyBytes},
			newest: stat.Pzxid,
		}
	}
	return elements, nil
}

// read reads the data of an element.
func (q *SimpleDistributedQueue) read(c *simpleCall, e *element) error {
	e.claim.Begin(reply.Once(c.ctx))
	if !reply.Await(c.ctx, e.claim.Read.Done()) {
		return c.ctx.Err()
	}
	e.claim.IsReadable(context.WithoutCancel(c.ctx))
	switch err := e.claim.Err; {
	case errors.Is(err, zk.ErrNoNode):
		return node.ErrTaken
	case err == nil && e.claim.Stat.Czxid > e.newest: // another element of a path that was made anew
		return node.ErrChanged
	case err == nil, waitqueue.IsPassing(err):
		return err
	default:
		return e.error(err)
	}
}

// remove reads and deletes an element. The error is an [*ItemError] if the element may be deleted without an answer.
func (q *SimpleDistributedQueue) remove(c *simpleCall, e *element) error {
	if err := q.read(c, e); err != nil {
		return err
	}
	e.claim.Submit(reply.Once(c.ctx))
	reply.AwaitBeyond(c.ctx, e.claim.Done())
	_, err := e.claim.End(c.ctx)
	if waitqueue.IsOutage(err) {
		var m *claim.Message
		if m, err = e.claim.Resolve(c.ctx); m == nil && err == nil {
			err = node.ErrChanged
		}
	}
	switch {
	case err == nil, errors.Is(err, node.ErrChanged), reply.IsThrottled(err):
		return err
	case errors.Is(err, node.ErrTaken):
		q.obs.ClaimLost(c.ctx, report.Taken)
		return err
	case reply.IsUncertain(c.ctx, err) && !errors.Is(err, ErrUncertain):
		err = errtext.Join(ErrUncertain, errtext.Sent(err, framework.ErrNotSent))
	}
	if ended := c.ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = errtext.Join(err, ended)
	}
	return e.error(err)
}
