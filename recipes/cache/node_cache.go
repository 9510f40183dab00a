package cache

import (
	"context"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/listeners"
)

// NodeCache keeps a copy of one node. It is a [CuratorCache] of a single node with the events of Java's older cache.
// All methods are safe for concurrent use. In Java: NodeCache.
type NodeCache struct {
	engine    *engine
	listeners listeners.Set[*ChildData]
	quiet     bool // the node that there is at the start is no event
}

// NewNodeCache returns a cache of the node at path. It does no I/O; a path that cannot be is the error of Start. In
// Java the nodes above it are created; here they are not.
func NewNodeCache(client Client, path string, opts ...Option) *NodeCache {
	c := new(NodeCache)
	s := settingsOf(opts)
	s.maxDepth = 0
	c.engine = newEngine(client, "NodeCache "+path, path, s, c.notify)
	return c
}

func (c *NodeCache) notify(ctx context.Context, n note) {
	if n.kind == change && (n.ready || !c.quiet) {
		c.listeners.Notify(ctx, n.event.New, c.engine.guard())
	}
}

// Start begins to fill the cache, and does not wait. In Java: start.
func (c *NodeCache) Start() error { return c.engine.start(nil) }

// StartAndBuild is Start that waits until the node is read, without an event for it. When it fails with the error of
// ctx the cache is started. In Java: start(true).
func (c *NodeCache) StartAndBuild(ctx context.Context) error {
	return startAndBuild(ctx, c.engine, func() { c.quiet = true })
}

func startAndBuild(ctx context.Context, e *engine, first func()) error {
	if err := e.start(first); err != nil {
		return err
	}
	if err := e.awaitReady(ctx); err != nil {
		return errtext.Wrap(err, "cache", "build %s", e.root.path)
	}
	return nil
}

// Close ends the cache as [CuratorCache.Close] does.
func (c *NodeCache) Close() error {
	c.engine.close()
	return nil
}

// Listenable returns the listeners. They are called with the node when it is created or its data is changed, and with
// nil when it is deleted. In Java: NodeCacheListener, which has no argument.
func (c *NodeCache) Listenable() callbacks.Listenable[*ChildData] { return &c.listeners }

// CurrentData returns the node, nil if it does not exist or is not read yet. In Java: getCurrentData.
func (c *NodeCache) CurrentData() *ChildData { return c.engine.get(c.engine.root.path) }

// Err is as [CuratorCache.Err].
func (c *NodeCache) Err() error { return c.engine.err(c.engine.root.path) }

// Path returns the path of the node. In Java: getPath.
func (c *NodeCache) Path() string { return c.engine.root.path }

// Rebuild reads the node again, and waits for it. What has changed is told. In Java: rebuild, which tells nothing.
func (c *NodeCache) Rebuild(ctx context.Context) error { return c.engine.rebuild(ctx) }
