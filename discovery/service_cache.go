package discovery

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/cache"
)

// ServiceCache keeps the instances of a service in memory. While the client is connected it converges to what the
// servers have; without a connection it stays as it is, so that callers find the instances through an outage. All
// methods are safe for concurrent use. In Java: ServiceCache.
type ServiceCache[T any] struct {
	d     *ServiceDiscovery[T]
	path  string
	err   error // returned by Start if not nil
	cache *cache.CuratorCache

	listeners listeners.Set[Change[T]]
	calls     waitqueue.Serial // of the listeners
	listening context.Context  // of the listeners; ends with Close
	stop      context.CancelCauseFunc

	started    atomic.Bool
	report     report.Service
	isDown     func(*snapshot[T]) int // of a provider; nil for none
	changedAt  atomic.Int64           // nanoseconds since 1970
	generation atomic.Uint64          // counts the changes
	current    atomic.Pointer[snapshot[T]]
	mu         sync.Mutex    // of what follows, and of making a snapshot
	unobserve  func()        // nil before Start
	changed    chan struct{} // closed after the next change; nil if nobody waits
}

// snapshot has the nodes of a service after a number of changes. It is immutable.
type snapshot[T any] struct {
	generation uint64
	entries    []Entry[T]
	nodes      []*cache.ChildData // of the entries
}

// Change is a change of a node of a service.
type Change[T any] struct {
	Entry[T]
	// Gone means that the node is not there any more. Instance is the one that it was, or Err says why it was none.
	Gone bool
}

// Cache returns a cache of the instances of a service. It does no I/O. [ServiceDiscovery.Close] closes it. Start
// returns an error if the name is invalid. In Java: serviceCacheBuilder.
func (d *ServiceDiscovery[T]) Cache(name string) *ServiceCache[T] {
	c := &ServiceCache[T]{
		d: d, path: d.servicePath(name), err: validateName(name),
		cache: cache.NewCuratorCache(d.client, d.servicePath(name), cache.WithMaxDepth(1), cache.WithName(name)),
	}
	c.report = report.NewService(hook.Telemetry(d.client), name, c.path)
	root := context.Background() //nolint:forbidigo // Close cancels it
	c.listening, c.stop = context.WithCancelCause(root)
	c.cache.AddListener(c.note)
	c.cache.AddListener(cache.AfterInitialized(c.notify))
	return c
}

// Start begins to follow the service and waits until its instances are known, or the servers refuse to show them: see
// Err. ctx bounds the wait alone: if it ends, the cache is started and goes on. Start fails with [ErrStarted] the
// second time, and with [ErrClosed] or [ErrNotStarted] of its discovery. In Java: start; startImmediate is a Start
// whose context has ended.
func (c *ServiceCache[T]) Start(ctx context.Context) error {
	if c.err != nil {
		return wrap(c.err, "start", c.path)
	}
	if err := c.d.give(c); err != nil {
		return err
	}
	if err := c.cache.Start(); err != nil {
		if !errors.Is(err, cache.ErrStarted) {
			c.d.takeBack(c)
		}
		return wrapCache(err, c.path)
	}
	c.changedAt.Store(time.Now().UnixNano())
	c.observe()
	defer c.generation.Add(1) // the cache may be loaded before note hears of it
	return wrapCache(c.cache.Ready(ctx), c.path)
}

// Instances returns the instances of the service, disabled ones too, sorted by the names of their nodes. In Java:
// getInstances.
func (c *ServiceCache[T]) Instances() []ServiceInstance[T] { return instancesOf(c.snapshot().entries) }

// Entries returns all nodes of the service that this client may read. A node that is no instance is an entry with an
// error: it does not keep the instance that it has been. The client reports the error as an unhandled one, once for
// each change of the node. Not in Java.
func (c *ServiceCache[T]) Entries() []Entry[T] { return slices.Clone(c.snapshot().entries) }

// Err returns why the cache cannot follow the service for now, or nil: its list cannot be read, or its watch not be
// set. It is tried again, with growing pauses. An outage is no reason. Not in Java.
func (c *ServiceCache[T]) Err() error { return c.cache.Err(c.path) }

// Sync waits until the cache contains everything that any client wrote before the call: see [cache.CuratorCache.Sync].
// Not in Java.
func (c *ServiceCache[T]) Sync(ctx context.Context) error {
	defer c.generation.Add(1) // as in Start
	return wrapCache(c.cache.Sync(ctx), c.path)
}

// AddListener adds a listener to the changes of the service behind the first load; remove removes it. The listeners are
// called one at a time and in order, on a goroutine of the cache. Their context ends with Close. In Java: addListener.
func (c *ServiceCache[T]) AddListener(fn callbacks.Listener[Change[T]]) (remove func()) {
	return c.listeners.Add(fn)
}

// Changes returns an iterator over the nodes of the service and then over every later change, without a gap. It first
// waits until they are known. The iterator ends when ctx ends or the cache is closed, and yields nothing before Start.
// Changes wait in memory, without a limit, until the caller takes them. Not in Java.
func (c *ServiceCache[T]) Changes(ctx context.Context) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		for ev := range c.cache.Changes(ctx) {
			if change, ok := c.changeOf(ev); ok && !yield(change) {
				return
			}
		}
	}
}

// Close stops the cache and always returns nil. No listener call begins after it returns; the context of one that is
// under way ends. A second Close does nothing. In Java: close.
func (c *ServiceCache[T]) Close() error {
	c.stop(ErrClosed)
	c.d.takeBack(c)
	_ = c.cache.Close() // nil
	c.mu.Lock()
	unobserve := c.unobserve
	c.mu.Unlock()
	if unobserve != nil {
		unobserve() // without the lock, which a reader of the gauges takes
	}
	c.note(c.listening, cache.Event{})
	return nil
}

// observe begins to show the state of the cache, unless Close was faster.
func (c *ServiceCache[T]) observe() {
	unobserve := c.report.Observe(c.state) // without the lock, which a reader of the gauges takes
	c.mu.Lock()
	c.unobserve = unobserve
	c.mu.Unlock()
	c.started.Store(true)
	if c.listening.Err() != nil {
		unobserve()
	}
}

// isRunning returns an error unless the cache is between Start and Close.
func (c *ServiceCache[T]) isRunning() error {
	switch {
	case c.listening.Err() != nil:
		return ErrClosed
	case !c.started.Load():
		return ErrNotStarted
	}
	return nil
}

// state returns what the gauges show.
func (c *ServiceCache[T]) state() report.ServiceState {
	s := c.snapshot()
	state := report.ServiceState{Changed: time.Unix(0, c.changedAt.Load())}
	for _, e := range s.entries {
		if e.Err == nil {
			state.Known++
		}
	}
	if c.isDown != nil {
		state.Down = c.isDown(s)
	}
	return state
}

// note notes a change. It runs on the goroutine of the cache, behind the change.
func (c *ServiceCache[T]) note(context.Context, cache.Event) {
	c.generation.Add(1)
	c.changedAt.Store(time.Now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// notify passes a change to the listeners, and does not wait for them: a listener that blocks holds up no other change.
func (c *ServiceCache[T]) notify(_ context.Context, ev cache.Event) {
	if c.listeners.Len() == 0 {
		return // nobody needs it decoded
	}
	change, ok := c.changeOf(ev)
	if !ok {
		return
	}
	call := waitqueue.Guard(context.WithoutCancel(c.listening), c.d.client, "ServiceCache "+c.path)
	c.calls.Do(func() {
		c.listeners.Notify(c.listening, change, func(fn func()) {
			if c.listening.Err() == nil { // the listener before it may have outlasted Close
				call(fn)
			}
		})
	})
}

// changeOf returns the change of an event. ok is false if the event is not about a node of the service.
func (c *ServiceCache[T]) changeOf(ev cache.Event) (change Change[T], ok bool) {
	node := ev.New
	if node == nil {
		node = ev.Old
	}
	if node == nil || node.Path == c.path {
		return change, false
	}
	change.Path, change.Gone = node.Path, ev.New == nil
	change.Instance, change.Err = c.d.decode(node.Path, node.Data)
	return change, true
}

// nextChange returns a channel that is closed after the next change.
func (c *ServiceCache[T]) nextChange() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// snapshot returns the nodes of the service as they are now. Nothing is allocated unless they have changed.
func (c *ServiceCache[T]) snapshot() *snapshot[T] {
	if s := c.current.Load(); s != nil && s.generation == c.generation.Load() {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.current.Load()
	if before == nil {
		before = new(snapshot[T])
	}
	// A change that comes behind this line makes the next call begin again.
	now := &snapshot[T]{generation: c.generation.Load()}
	children := c.cache.Children(c.path)
	now.entries = make([]Entry[T], 0, len(children))
	now.nodes = make([]*cache.ChildData, 0, len(children))
	known := make(map[*cache.ChildData]int, len(before.nodes))
	for i, node := range before.nodes {
		known[node] = i
	}
	for _, name := range slices.Sorted(maps.Keys(children)) {
		node := children[name]
		e := Entry[T]{Path: node.Path}
		if i, ok := known[node]; ok {
			e = before.entries[i]
		} else {
			if e.Instance, e.Err = c.d.decode(node.Path, node.Data); e.Err != nil {
				c.d.reportError("ServiceCache", e.Err)
			}
		}
		now.entries, now.nodes = append(now.entries, e), append(now.nodes, node)
	}
	c.current.Store(now)
	return now
}

// wrapCache returns an error of the cache as one of this package.
func wrapCache(err error, path string) error {
	switch {
	case errors.Is(err, cache.ErrStarted):
		return ErrStarted
	case errors.Is(err, cache.ErrNotStarted):
		return ErrNotStarted
	}
	return wrap(err, "cache", path)
}
