package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// elementName is in front of the numbers of elements.
const elementName = "qn-"

// SimpleDistributedQueue is a queue of bytes, the same as the queue among ZooKeeper's own recipes: each element is
// given to one of those who ask for it, in the order in which they were offered. There is nothing to start or to close.
// All methods are safe for concurrent use, and those of one value are the cheaper for it: they share what they know of
// the queue.
//
// While there is no connection the methods wait for one, for as long as ctx lasts. No element is put, or given, twice.
// The end of ctx leaves the answer to what is under way another second to come; where it does not, or the connection is
// lost, the error wraps [ErrUncertain]. If it is about an element that was to be removed it is an [*ItemError], with
// the bytes, which may be in no queue any more.
//
// An element that cannot be read stays the first, and is the error of all methods but Offer. In Java:
// SimpleDistributedQueue.
type SimpleDistributedQueue struct {
	client Client
	path   string
	bad    error // why the path cannot be
	name   string
	told   *telemetry.Queue

	takers atomic.Int64  // who want an element
	line   chan struct{} // of the one of them who waits until there is one
	turn   chan struct{} // of the one who looks for the first; what follows is theirs

	names  []nodeName // listed and not read, in order
	looked []*element // being read, in order
	newest int64      // zxid that no element of the list is younger than
	misses int        // elements in a row that were gone
}

// element is an element on its way out.
type element struct {
	name    nodeName
	path    string
	asked   time.Time
	read    builders.Future[[]byte]
	data    []byte
	stat    zk.Stat
	removed builders.Future[struct{}]
	watcher *callbacks.Watcher // that its removal sets off, nil if there is none
}

// NewSimpleDistributedQueue returns the queue of a path. It does no I/O; a path that cannot be is the error of all
// methods.
func NewSimpleDistributedQueue(client Client, path string, opts ...SimpleOption) *SimpleDistributedQueue {
	q := &SimpleDistributedQueue{client: client, path: path, line: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	if err := zkpath.Validate(path, false); err != nil {
		q.bad = errtext.Wrap(err, "queue", "")
	}
	for _, o := range opts {
		o.applySimple(q)
	}
	q.told = telemetry.Of(client).NewQueue("simple_queue", q.name, path)
	return q
}

// SimpleOption changes a default of a [SimpleDistributedQueue].
type SimpleOption interface {
	applySimple(*SimpleDistributedQueue)
}

type simpleName string

func (o simpleName) applySimple(q *SimpleDistributedQueue) { q.name = string(o) }

// WithName sets what spans and metrics call a [SimpleDistributedQueue]; see [Builder.Name] for the others.
func WithName(name string) SimpleOption { return simpleName(name) }

// Offer puts an element, which may be empty, behind the others. In Java: offer.
func (q *SimpleDistributedQueue) Offer(ctx context.Context, data []byte) error {
	if q.bad != nil {
		return q.bad
	}
	if data == nil {
		data = []byte{} // nil is the default data of the client
	}
	ctx, sending := q.told.Send(q.client.Telemetry().Handling(ctx), 1)
	name, err := q.offer(ctx, data)
	sending.End(name, err)
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
		case errors.Is(err, zk.ErrNoNode): // without parents, so that a lost connection leaves open no more than it must
			if err = q.ensure(ctx); err == nil {
				continue
			}
		case isOpen(ctx, err):
			return "", &ItemError{Path: q.path, Err: errtext.Join(ErrUncertain, err)}
		}
		if lineup.IsOutage(err) {
			err = awaitConnection(ctx, q.client)
		}
		if err != nil {
			return "", err
		}
	}
}

// Poll removes the first element and returns it; nil if there is none. In Java: poll().
func (q *SimpleDistributedQueue) Poll(ctx context.Context) ([]byte, error) {
	return q.remove(ctx, ctx, q.claim)
}

// PollFor is Poll that waits for an element, but no longer than wait; nil then. In Java: poll(timeout, unit).
func (q *SimpleDistributedQueue) PollFor(ctx context.Context, wait time.Duration) ([]byte, error) {
	if wait <= 0 {
		return q.Poll(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	data, err := q.remove(ctx, patience, q.await)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // the end of wait
		return nil, nil
	}
	return data, err
}

// Take is Poll that waits for an element. In Java: take.
func (q *SimpleDistributedQueue) Take(ctx context.Context) ([]byte, error) {
	return q.remove(ctx, ctx, q.await)
}

// Remove is Poll that fails with [ErrEmpty] if there is no element. In Java: remove.
func (q *SimpleDistributedQueue) Remove(ctx context.Context) ([]byte, error) {
	return orEmpty(q.Poll(ctx))
}

// Peek returns the first element, which stays; nil if there is none. In Java: peek.
func (q *SimpleDistributedQueue) Peek(ctx context.Context) (data []byte, err error) {
	c := &call{ctx: ctx, patience: ctx, began: time.Now()}
	err = q.inTurn(c, func() error {
		e, err := q.first(c)
		if e != nil {
			data, e.asked = e.data, time.Time{} // it is the caller's: who comes next reads it again
		}
		return err
	})
	return data, err
}

// Element is Peek that fails with [ErrEmpty] if there is no element. In Java: element.
func (q *SimpleDistributedQueue) Element(ctx context.Context) ([]byte, error) {
	return orEmpty(q.Peek(ctx))
}

func orEmpty(data []byte, err error) ([]byte, error) {
	if data == nil && err == nil {
		return nil, ErrEmpty
	}
	return data, err
}

// call is one call of a method.
type call struct {
	ctx      context.Context
	patience context.Context // bounds the waiting for an element, and for a connection before there is one
	began    time.Time       // what was read before is not good enough
	watcher  *callbacks.Watcher
}

// remove removes the first element. next claims it.
func (q *SimpleDistributedQueue) remove(
	ctx, patience context.Context, next func(*call) (*element, error),
) ([]byte, error) {
	asker, asked := ctx, q.told.Clock()
	ctx = q.client.Telemetry().Aside(ctx)
	for {
		e, err := q.want(&call{ctx: ctx, patience: patience, began: time.Now()}, next)
		if e == nil {
			return nil, err
		}
		err = q.settle(ctx, e)
		if err == nil {
			q.told.Received(asker, asked, 1, nil)
			q.told.HandedOver(asker, time.UnixMilli(e.stat.Ctime), 1)
			return e.data, nil
		}
		if e.watcher != nil {
			unwatch(ctx, q.client, e.watcher, q.path)
		}
		if !errors.Is(err, errTaken) {
			return nil, err
		}
	}
}

func (q *SimpleDistributedQueue) want(c *call, next func(*call) (*element, error)) (*element, error) {
	q.takers.Add(1)
	defer q.takers.Add(-1)
	return next(c)
}

// await claims the first element as soon as there is one. Of those who share the value one waits for it, the others for
// that one: a new element is one request to find, however many want it.
func (q *SimpleDistributedQueue) await(c *call) (*element, error) {
	select {
	case q.line <- struct{}{}:
		defer func() { <-q.line }()
	case <-c.patience.Done():
		return nil, c.patience.Err()
	}
	for {
		changed := make(chan zk.Event, 1)
		c.watcher = callbacks.NewChanWatcher(changed) // a new one: the late removal of the last must not take it
		e, err := q.claim(c)
		if e != nil {
			e.watcher = c.watcher
			return e, nil
		}
		if err == nil {
			select {
			case <-changed: // whatever it was: look again
			case <-c.patience.Done():
				err = c.patience.Err()
			}
		}
		unwatch(c.ctx, q.client, c.watcher, q.path)
		if err != nil {
			return nil, err
		}
	}
}

// claim submits the removal of the first element and returns it; nil if there is none. Who looks next, behind it, finds
// the queue without it.
func (q *SimpleDistributedQueue) claim(c *call) (claimed *element, err error) {
	err = q.inTurn(c, func() error {
		e, err := q.first(c)
		if e == nil {
			return err
		}
		e.removed = q.client.Delete().WithVersion(e.stat.Version).Submit(once(c.ctx), e.path)
		if isDone(e.removed) {
			if _, err := e.removed.Wait(c.ctx); errors.Is(err, framework.ErrNotSent) {
				return err
			}
		}
		q.looked, q.misses = q.looked[1:], 0
		claimed = e
		return nil
	})
	return claimed, err
}

// inTurn calls fn when nobody else looks at the queue, and again after a lost connection.
func (q *SimpleDistributedQueue) inTurn(c *call, fn func() error) error {
	if q.bad != nil {
		return q.bad
	}
	for {
		err := q.onceInTurn(c, fn)
		if !lineup.IsOutage(err) {
			return err
		}
		if err := awaitConnection(c.patience, q.client); err != nil {
			return err
		}
	}
}

func (q *SimpleDistributedQueue) onceInTurn(c *call, fn func() error) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	err := fn()
	if lineup.IsOutage(err) {
		q.forget()
	}
	return err
}

// first returns the first element, read; nil if there is none. Those that are offered come behind those of the last
// list, so that one is enough for all that are in it.
func (q *SimpleDistributedQueue) first(c *call) (*element, error) {
	for {
		if len(q.names)+len(q.looked) == 0 {
			if err := q.list(c); err != nil || len(q.names) == 0 {
				return nil, err
			}
		}
		q.look(c)
		e := q.looked[0]
		if e.asked.Before(c.began) { // it may have gone since, and another come by its name in a queue made anew
			e = q.readElement(c, e.name)
			q.looked[0] = e
		}
		select {
		case <-e.read.Done():
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
		data, err := e.read.Wait(c.ctx)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			q.looked = q.looked[1:]
			if q.misses++; isUsedUp(q.misses, len(q.names)) {
				q.forget()
			}
		case lineup.IsOutage(err):
			return nil, err
		case err != nil:
			return nil, &ItemError{Path: e.path, Data: data, Err: err}
		case e.stat.Czxid > q.newest: // the queue was deleted and made anew: there are others before it
			q.forget()
		default:
			if e.data = data; data == nil {
				e.data = []byte{}
			}
			return e, nil
		}
	}
}

func (q *SimpleDistributedQueue) forget() { q.names, q.looked = nil, nil }

// look reads as many as are wanted, and further the more of them are gone.
func (q *SimpleDistributedQueue) look(c *call) {
	for most := max(int(q.takers.Load()), 1) + q.misses; len(q.names) > 0 && len(q.looked) < most; {
		q.looked = append(q.looked, q.readElement(c, q.names[0]))
		q.names = q.names[1:]
	}
}

func (q *SimpleDistributedQueue) readElement(c *call, n nodeName) *element {
	e := &element{name: n, path: zkpath.Join(q.path, n.whole), asked: time.Now()}
	e.read = q.client.GetData().StoringStatIn(&e.stat).Submit(once(c.ctx), e.path)
	return e
}

// list lists the queue. For who waits it is created, as a container like its parents: the server may have removed it
// after the last element.
func (q *SimpleDistributedQueue) list(c *call) error {
	q.forget()
	q.misses = 0
	var stat zk.Stat
	list := q.client.GetChildren().StoringStatIn(&stat)
	if c.watcher != nil {
		list = list.UsingWatcher(c.watcher)
	}
	children, err := list.ForPath(builders.InOneFlight(c.ctx), q.path)
	if errors.Is(err, zk.ErrNoNode) {
		if c.watcher == nil {
			return nil
		}
		if err = q.ensure(c.ctx); err == nil {
			return q.list(c)
		}
	}
	if err != nil {
		return err
	}
	q.names, q.newest = elements(children), stat.Pzxid
	return nil
}

// elements returns those of the children that are elements, in order.
func elements(children []string) []nodeName {
	names := make([]nodeName, 0, len(children))
	for _, child := range children {
		rest, found := strings.CutPrefix(child, elementName)
		if !found {
			continue
		}
		n := nodeName{whole: child}
		if number, err := strconv.ParseInt(rest, 10, 32); err == nil {
			n.number, n.ok = int32(number), true
		}
		names = append(names, n)
	}
	slices.SortFunc(names, byNumber)
	return names
}

// ensure creates what is missing of the path.
func (q *SimpleDistributedQueue) ensure(ctx context.Context) error {
	exists := q.client.CheckExists().CreatingParentContainersIfNeeded()
	_, err := exists.ForPath(builders.InOneFlight(ctx), zkpath.Join(q.path, elementName))
	return err
}

// settle waits until it is known that e is ours.
func (q *SimpleDistributedQueue) settle(ctx context.Context, e *element) error {
	_, err := answer(ctx, e.removed)
	switch {
	case lineup.IsOutage(err):
		err = q.resolve(ctx, e)
	case isOpen(ctx, err):
		err = errtext.Join(ErrUncertain, err)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion): // the latter will be listed again
		return errTaken
	}
	return &ItemError{Path: e.path, Data: e.data, Err: err}
}

// resolve finds out, after a lost connection, whether e is removed, and by whom. If it is there it is removed now; that
// it is the same is told by when it was created.
func (q *SimpleDistributedQueue) resolve(ctx context.Context, e *element) error {
	for {
		err := awaitConnection(ctx, q.client)
		var stat *zk.Stat
		if err == nil {
			stat, err = q.client.CheckExists().ForPath(builders.InOneFlight(ctx), e.path)
		}
		if err == nil && (stat == nil || stat.Czxid != e.stat.Czxid) {
			return ErrUncertain
		}
		if err == nil {
			_, err = answer(ctx, q.client.Delete().WithVersion(e.stat.Version).Submit(once(ctx), e.path))
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrBadVersion):
			return err
		case errors.Is(err, zk.ErrNoNode): // it was removed before, which the server that was asked had not heard of
			return ErrUncertain
		case !lineup.IsOutage(err):
			return errtext.Join(ErrUncertain, err)
		}
	}
}

// once is for an operation that is tried once, and goes on when ctx ends.
func once(ctx context.Context) context.Context {
	return builders.InOneFlight(context.WithoutCancel(ctx))
}

// lastAnswer is how long an answer is waited for after the end of the context.
const lastAnswer = time.Second

// answer waits for the answer to what changes the queue: without it nobody knows what has become of an element, and in
// all likelihood it is on its way.
func answer[T any](ctx context.Context, f builders.Future[T]) (T, error) {
	select {
	case <-f.Done():
	case <-ctx.Done():
		t := time.NewTimer(lastAnswer)
		defer t.Stop()
		select {
		case <-f.Done():
		case <-t.C:
		}
	}
	return f.Wait(ctx)
}

// isOpen reports whether err leaves open if something sent with once has taken effect.
func isOpen(ctx context.Context, err error) bool {
	if errors.Is(err, framework.ErrNotSent) {
		return false
	}
	return lineup.IsOutage(err) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
