package cache

import (
	"context"
	"iter"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/listeners"
)

// CuratorCache keeps a copy of a node and of everything below it, and notifies its listeners of changes. While the
// client is connected, the copy converges to the tree. Without a connection the copy stays as it is. It converges
// again on the next connection, also in a new session. A change that was undone in the meantime has no event. All
// methods are safe for concurrent use. In Java: CuratorCache.
type CuratorCache struct {
	base
	listeners listeners.Set[Event]
}

// NewCuratorCache returns a cache of the tree at path. It does no I/O. If path is invalid, Start returns an error. In
// Java: CuratorCache.build.
func NewCuratorCache(client *framework.Client, path string, opts ...Option) *CuratorCache {
	c := new(CuratorCache)
	c.engine = newEngine(client, "CuratorCache", "curator_cache", path, c.notify, opts...)
	return c
}

func (c *CuratorCache) notify(ctx context.Context, ev Event) {
	if ev.Type <= Initialized {
		c.listeners.Notify(ctx, ev, c.engine.call)
	}
}

// AddListener adds a listener to the events of the cache; remove removes it. The listeners are called one at a time, in
// the order of the events, on a goroutine of the cache. Events wait in memory, without a limit, until the listeners
// have handled the earlier ones. A listener that is added after Start gets the events whose calls have not begun, and
// none for the nodes that are in the cache already: see [CuratorCache.Changes]. The events of one path are in order. A
// node is created after its parent and deleted before its parent. The context of a listener ends with Close. In Java:
// listenable.
func (c *CuratorCache) AddListener(fn Listener) (remove func()) { return c.listeners.Add(fn) }

// Ready waits until the first load is complete: each node that existed at the start is in the cache, or a read of it
// has failed: see [CuratorCache.Err]. ctx bounds the wait. Without a connection Ready keeps waiting. It returns the
// error of ctx, with the reason for a missing connection, [ErrNotStarted], [ErrClosed], or framework.ErrClosed when the
// client is closed. If the chroot does not exist, Ready returns framework.ErrNoChroot and does not wait. The cache goes
// on: when the chroot is created, the first load completes, and a later Ready returns nil.
func (c *CuratorCache) Ready(ctx context.Context) error {
	return wrap(c.engine.awaitReady(ctx), "await", c.engine.root.path)
}

// Sync waits until the cache contains everything that any client wrote before the call. What the methods return
// afterwards is at least that new. Sync also reads the nodes again that could not be read. Those that still cannot be
// read are an exception: see [CuratorCache.Err]. So are writes to a node while this client has no permission to read
// it, because the server sends no event of them: see [CuratorCache.Rebuild]. ctx bounds the wait. Without a connection
// Sync keeps waiting. It returns the error of ctx, the error of a server without a quorum, framework.ErrNoChroot if the
// chroot does not exist, [ErrNotStarted] or [ErrClosed]. Not in Java.
func (c *CuratorCache) Sync(ctx context.Context) error {
	return wrap(c.engine.sync(ctx), "sync", c.engine.root.path)
}

// Get returns the node at path. ok is false if the node is not in the cache. In Java: get.
func (c *CuratorCache) Get(path string) (node *ChildData, ok bool) {
	node = c.engine.get(path)
	return node, node != nil
}

// Children returns the children of a node, keyed by name, or nil if the node is not in the cache.
func (c *CuratorCache) Children(path string) map[string]*ChildData { return c.engine.children(path) }

// All returns an iterator over a snapshot of the cache, keyed by path and sorted by path. A parent comes before its
// children. In Java: stream.
func (c *CuratorCache) All() iter.Seq2[string, *ChildData] { return c.engine.all() }

// Size returns the number of nodes in the cache. In Java: size.
func (c *CuratorCache) Size() int { return c.engine.size() }

// Changes returns an iterator over the contents of the cache and then over every later change, without a gap. It first
// waits for the first load, also while the chroot does not exist. It then yields the nodes in the cache as
// [NodeCreated] events, then [Initialized], then the changes. The iterator ends when ctx ends or the cache is closed,
// and yields nothing if the cache is not started. Events wait in memory, without a limit, until the caller takes them.
// Not in Java.
func (c *CuratorCache) Changes(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if c.engine.awaitLoad(ctx) != nil {
			return
		}
		nodes, events := c.engine.follow()
		defer c.engine.unfollow(events)
		goesOn := func(ev Event) bool { return ctx.Err() == nil && c.engine.ctx.Err() == nil && yield(ev) }
		for _, node := range nodes {
			if !goesOn(Event{Type: NodeCreated, New: node, ready: true}) {
				return
			}
		}
		if !goesOn(Event{Type: Initialized, ready: true}) {
			return
		}
		for {
			for _, ev := range events.take() {
				if !goesOn(ev) {
					return
				}
			}
			select {
			case <-events.added:
			case <-ctx.Done():
				return
			case <-c.engine.ctx.Done():
				return
			}
		}
	}
}
