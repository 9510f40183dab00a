package cache

import (
	"context"
	"iter"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/listeners"
)

// CuratorCache keeps a copy of a node and of all below it, and tells its listeners what changes. While the client is
// connected the copy becomes equal to the tree; without a connection it stays as it is, and becomes equal when there is
// one again. What happened and was undone meanwhile is not seen. All methods are safe for concurrent use. In Java:
// CuratorCache.
type CuratorCache struct {
	engine    *engine
	listeners listeners.Set[Event]
}

// NewCuratorCache returns a cache of the tree at path. It does no I/O; a path that cannot be is the error of Start.
func NewCuratorCache(client Client, path string, opts ...Option) *CuratorCache {
	c := new(CuratorCache)
	c.engine = newEngine(client, "CuratorCache "+path, path, settingsOf(opts), c.notify)
	return c
}

func (c *CuratorCache) notify(ctx context.Context, n note) {
	switch {
	case n.kind == change:
		c.listeners.Notify(ctx, n.event, c.engine.guard())
	case n.kind == loaded && n.first:
		c.listeners.Notify(ctx, Event{Type: Initialized, ready: true}, c.engine.guard())
	}
}

// Start begins to fill the cache, and does not wait: see [CuratorCache.Ready]. It fails with [ErrStarted] the second
// time and with [ErrClosed] after Close.
func (c *CuratorCache) Start() error { return c.engine.start(nil) }

// Close ends the cache and removes its watches, in the background until that is done. No call of a listener begins
// after it; it does not wait for one that is under way, which may call it. A second Close does nothing.
func (c *CuratorCache) Close() error {
	c.engine.close()
	return nil
}

// Listenable returns the listeners. They are called one at a time, on a goroutine of the cache, with the events in
// their order; events that they are too slow for stay in memory. The events of a path are in order. A node is created
// after the one above it, and deleted before it. In Java: listenable.
func (c *CuratorCache) Listenable() callbacks.Listenable[Event] { return &c.listeners }

// Ready returns when every node that there was at the start is in the cache, or could not be read: see
// [CuratorCache.Err]. The error is that of ctx, [ErrNotStarted] or [ErrClosed].
func (c *CuratorCache) Ready(ctx context.Context) error {
	if err := c.engine.awaitReady(ctx); err != nil {
		return errtext.Wrap(err, "cache", "await %s", c.engine.root.path)
	}
	return nil
}

// Sync returns when the cache has everything that was written before the call, by any client: what the methods return
// then is not older. Nodes that cannot be read are excepted: see [CuratorCache.Err]. It goes on waiting while there is
// no connection. The error is that of ctx, of a server without a quorum, [ErrNotStarted] or [ErrClosed].
func (c *CuratorCache) Sync(ctx context.Context) error {
	if err := c.engine.sync(ctx); err != nil {
		return errtext.Wrap(err, "cache", "sync %s", c.engine.root.path)
	}
	return nil
}

// Get returns a node. In Java: get.
func (c *CuratorCache) Get(path string) (node *ChildData, ok bool) {
	node = c.engine.get(path)
	return node, node != nil
}

// Children returns the children of a node by name; nil if the node is not in the cache.
func (c *CuratorCache) Children(path string) map[string]*ChildData { return c.engine.children(path) }

// All yields the nodes by path as they were at one moment, a node before those below it. In Java: stream.
func (c *CuratorCache) All() iter.Seq2[string, *ChildData] { return c.engine.all() }

// Size returns the number of nodes. In Java: size.
func (c *CuratorCache) Size() int { return c.engine.size() }

// Err returns why a node could not be read when that was tried last, nil if it was read or nothing is known of it; for
// the node of the cache also why it cannot be watched. It is tried again with growing pauses. What Get returns of such
// a node may be old.
func (c *CuratorCache) Err(path string) error { return c.engine.err(path) }

// Changes yields what the cache has, when it is ready, as nodes that are created, then [Initialized], and then every
// change, without a gap. It ends with ctx and with the cache. Events that the caller is too slow for stay in memory.
func (c *CuratorCache) Changes(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if c.engine.awaitReady(ctx) != nil {
			return
		}
		events := c.engine.follow()
		defer c.engine.unfollow(events)
		for {
			ev, ok := events.next(ctx)
			if !ok || !yield(ev) {
				return
			}
		}
	}
}
