package discovery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/usercode"
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
	reads     waitqueue.Serial // of the serializer, and of the filters of a provider
	listening context.Context  // of the listeners; ends with Close
	stop      context.CancelCauseFunc

	started    atomic.Bool
	report     report.Service
	changedAt  atomic.Int64  // nanoseconds since 1970
	generation atomic.Uint64 // counts the changes of items
	current    atomic.Pointer[snapshot[T]]

	// Of a provider; nil for none. judge says of an instance whether it may be chosen.
	judge  func(*item[T])
	isDown func(*item[T]) bool

	mu      sync.Mutex                  // no code of the program runs with it held
	nodes   map[string]*cache.ChildData // what the cache has, by path
	items   []*item[T]                  // what is known of them, sorted by path
	changed chan struct{}               // closed after the next change; nil if there is no wait
	chroot  error                       // the chroot did not exist at the last look; nil if it did
}

// item is a node of a service with what code of the program has made of it. It is immutable.
type item[T any] struct {
	Entry[T]
	node *cache.ChildData

	// Of a provider.
	candidate *Candidate[T] // nil if there is no instance
	passes    bool          // the filters let it pass
}

// snapshot has the nodes of a service after a number of changes. It is immutable.
type snapshot[T any] struct {
	generation uint64
	items      []*item[T]
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
		nodes: make(map[string]*cache.ChildData),
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
// second time, with [ErrClosed] or [ErrNotStarted] of its discovery, and with [framework.ErrClosed] if the client is
// closed. A missing chroot is [framework.ErrNoChroot]; the cache goes on then, too. In Java: start; startImmediate is a
// Start whose context has ended.
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
	context.AfterFunc(c.listening, c.report.Observe(c.state))
	c.started.Store(true)
	closing := hook.Closing(c.d.client)
	stop := context.AfterFunc(closing, func() { c.end(context.Cause(closing)) })
	context.AfterFunc(c.listening, func() { stop() })
	return c.await(ctx, c.cache.Ready)
}

// Instances returns the instances of the service, disabled ones too, sorted by the names of their nodes. In Java:
// getInstances.
func (c *ServiceCache[T]) Instances() []ServiceInstance[T] {
	items := c.snapshot().items
	instances := make([]ServiceInstance[T], 0, len(items))
	for _, i := range items {
		if i.Err == nil {
			instances = append(instances, i.Instance)
		}
	}
	return instances
}

// Entries returns all nodes of the service that this client may read. A node that is no instance is an entry with an
// error: it does not keep the instance that it has been. The client reports the error as an unhandled one, once for
// each change of the node. Not in Java.
func (c *ServiceCache[T]) Entries() []Entry[T] {
	items := c.snapshot().items
	entries := make([]Entry[T], len(items))
	for n, i := range items {
		entries[n] = i.Entry
	}
	return entries
}

// Err returns why the cache cannot follow the service for now, or nil: its list cannot be read, or its watch not be
// set. It is tried again, with growing pauses. Another reason is [framework.ErrNoChroot] of the last Start or Sync,
// until the service exists. An outage is no reason. Not in Java.
func (c *ServiceCache[T]) Err() error {
	if err := c.cache.Err(c.path); err != nil {
		return err
	}
	if _, exists := c.cache.Get(c.path); exists {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chroot
}

// Sync waits until the cache contains everything that any client wrote before the call: see [cache.CuratorCache.Sync].
// Not in Java.
func (c *ServiceCache[T]) Sync(ctx context.Context) error { return c.await(ctx, c.cache.Sync) }

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
		open, end := c.untilClosed(ctx)
		defer end()
		for ev := range c.cache.Changes(open) {
			if node := c.nodeOf(ev); node != nil && !yield(Change[T]{Entry: c.entryOf(node), Gone: ev.New == nil}) {
				return
			}
		}
	}
}

// Close stops the cache, empties it, and always returns nil. No listener call begins after it returns; the context of
// one that is under way ends. A second Close does nothing. The end of the client stops the cache, too, and leaves the
// instances that it has until then. In Java: close.
func (c *ServiceCache[T]) Close() error {
	c.d.takeBack(c)
	c.end(ErrClosed)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes, c.items = nil, nil
	c.noteChange()
	return nil
}

// end stops the cache.
func (c *ServiceCache[T]) end(cause error) {
	c.stop(cause)
	_ = c.cache.Close() // nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteChange()
}

// untilClosed returns a context that ends with ctx and with the cache.
func (c *ServiceCache[T]) untilClosed(ctx context.Context) (open context.Context, end func()) {
	open, cancel := context.WithCancel(ctx)
	remove := context.AfterFunc(c.listening, cancel)
	return open, func() {
		remove()
		cancel()
	}
}

// await waits until what reached waits for is in the instances. ctx bounds the wait.
func (c *ServiceCache[T]) await(ctx context.Context, reached func(context.Context) error) error {
	open, end := c.untilClosed(ctx)
	defer end()
	err := reached(open)
	if err == nil {
		err = c.findChroot(open)
	}
	if err == nil {
		c.followAll()
		read := make(chan struct{})
		c.reads.Do(func() { close(read) })
		select {
		case <-read:
		case <-open.Done():
			err = ctx.Err()
		}
	}
	if c.listening.Err() != nil {
		return context.Cause(c.listening)
	}
	return wrapCache(err, c.path)
}

// findChroot returns the error of a missing chroot, unless the service exists.
func (c *ServiceCache[T]) findChroot(ctx context.Context) (err error) {
	if _, exists := c.cache.Get(c.path); !exists {
		err = c.d.chrootError(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chroot = err
	return err
}

// followAll follows all nodes that the cache has. Its events may come later.
func (c *ServiceCache[T]) followAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, node := range c.cache.Children(c.path) {
		c.follow(node.Path)
	}
	for path := range c.nodes {
		c.follow(path)
	}
}

// follow takes in what the cache has at path. It looks there, because an event of it may be older than what is known.
// mu is held.
func (c *ServiceCache[T]) follow(path string) {
	node, _ := c.cache.Get(path)
	switch at, known := c.find(path); {
	case c.listening.Err() != nil || isSameState(node, c.nodes[path]):
	case node == nil:
		delete(c.nodes, path)
		c.remove(at, known)
	default:
		c.nodes[path] = node
		c.remove(at, known && c.items[at].node.Stat.Czxid != node.Stat.Czxid) // of an earlier life
		c.reads.Do(func() { c.read(node) })
	}
}

// find returns where the item of a path is, or would be. mu is held.
func (c *ServiceCache[T]) find(path string) (at int, known bool) {
	return slices.BinarySearchFunc(c.items, path, func(i *item[T], path string) int { return cmp.Compare(i.Path, path) })
}

func (c *ServiceCache[T]) remove(at int, known bool) {
	if known {
		c.items = slices.Delete(c.items, at, at+1)
		c.noteChange()
	}
}

// read makes an item of a node, unless there is a newer one. It runs on the goroutine of reads: code of the program
// that blocks holds up the changes of this cache alone.
func (c *ServiceCache[T]) read(node *cache.ChildData) {
	c.mu.Lock()
	isNewest := c.nodes[node.Path] == node
	c.mu.Unlock()
	if !isNewest || c.listening.Err() != nil {
		return
	}
	i := &item[T]{node: node, Entry: exited[T](node)}
	defer c.keep(i) // also if the goroutine ends
	i.Entry = c.decode(node)
	if i.Err == nil && c.judge != nil {
		c.judge(i)
	}
}

// keep makes an item known.
func (c *ServiceCache[T]) keep(i *item[T]) {
	if i.Err != nil {
		c.d.reportError("ServiceCache", i.Err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[i.Path] != i.node {
		return
	}
	at, known := c.find(i.Path)
	if !known {
		c.items = slices.Insert(c.items, at, i)
	} else { // its data has changed: that of an earlier life is gone
		if before := c.items[at].candidate; before != nil && i.candidate != nil {
			i.candidate.load = before.load
		}
		c.items[at] = i
	}
	c.noteChange()
}

// isRunning returns an error unless the cache is between Start and Close.
func (c *ServiceCache[T]) isRunning() error {
	switch {
	case c.listening.Err() != nil:
		return context.Cause(c.listening)
	case !c.started.Load():
		return ErrNotStarted
	}
	return nil
}

// state returns what the gauges show.
func (c *ServiceCache[T]) state() report.ServiceState {
	state := report.ServiceState{Changed: time.Unix(0, c.changedAt.Load())}
	for _, i := range c.snapshot().items {
		if i.Err == nil {
			state.Known++
		}
		if c.isDown != nil && c.isDown(i) {
			state.Down++
		}
	}
	return state
}

// note takes in a change. It runs on the goroutine of the cache, behind the change.
func (c *ServiceCache[T]) note(_ context.Context, ev cache.Event) {
	node := c.nodeOf(ev)
	if node == nil {
		return
	}
	c.changedAt.Store(time.Now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow(node.Path)
}

// noteChange notes a change of items, or of what a provider returns. mu is held.
func (c *ServiceCache[T]) noteChange() {
	c.generation.Add(1)
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// notify passes a change to the listeners, and does not wait for them: a listener that blocks holds up no other change.
func (c *ServiceCache[T]) notify(_ context.Context, ev cache.Event) {
	node := c.nodeOf(ev)
	if node == nil || c.listeners.Len() == 0 { // no need to decode it
		return
	}
	c.reads.Do(func() {
		if c.listening.Err() != nil {
			return
		}
		change := Change[T]{Entry: exited[T](node), Gone: ev.New == nil}
		defer func() { c.announce(change) }() // also if the goroutine ends
		change.Entry = c.entryOf(node)
	})
}

// announce calls the listeners behind the earlier changes.
func (c *ServiceCache[T]) announce(change Change[T]) {
	call := waitqueue.Guard(context.WithoutCancel(c.listening), c.d.client, "ServiceCache "+c.path)
	c.calls.Do(func() {
		c.listeners.Notify(c.listening, change, func(fn func()) {
			if c.listening.Err() == nil { // the listener before it may have outlasted Close
				call(fn)
			}
		})
	})
}

// nodeOf returns the node of the service that an event is about, or nil.
func (c *ServiceCache[T]) nodeOf(ev cache.Event) *cache.ChildData {
	node := ev.New
	if node == nil {
		node = ev.Old
	}
	if node == nil || node.Path == c.path {
		return nil
	}
	return node
}

// isSameState reports whether two reads of one path show one state: after a lost connection the cache reads all nodes
// again. A node that does not exist is nil. A server that was restored from a backup gives its transaction ids a second
// time.
func isSameState(a, b *cache.ChildData) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Stat.Mzxid == b.Stat.Mzxid && bytes.Equal(a.Data, b.Data)
}

// entryOf returns the entry of a node, which is known in most cases.
func (c *ServiceCache[T]) entryOf(node *cache.ChildData) Entry[T] {
	c.mu.Lock()
	at, known := c.find(node.Path)
	if known && isSameState(node, c.items[at].node) {
		defer c.mu.Unlock()
		return c.items[at].Entry
	}
	c.mu.Unlock()
	return c.decode(node)
}

// exited returns the entry of a node whose decoding has ended the goroutine.
func exited[T any](node *cache.ChildData) Entry[T] {
	err := errtext.Wrap(usercode.Exited("the serializer"), "discovery", "decode %s", node.Path)
	return Entry[T]{Path: node.Path, Err: err}
}

func (c *ServiceCache[T]) decode(node *cache.ChildData) Entry[T] {
	e := Entry[T]{Path: node.Path}
	e.Instance, e.Err = c.d.decode(node.Path, node.Data)
	return e
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
	now := &snapshot[T]{generation: c.generation.Load(), items: slices.Clone(c.items)}
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
