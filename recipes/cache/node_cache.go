package cache

import (
	"context"
	"slices"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/listeners"
)

// NodeCache keeps a copy of one node. It is a [CuratorCache] of a single node with the events of Java's older cache.
// All methods are safe for concurrent use. In Java: NodeCache.
type NodeCache struct {
	base
	listeners listeners.Set[*ChildData]
	quiet     bool // the first load sends no events
}

// NewNodeCache returns a cache of the node at path. It does no I/O. If path is invalid, Start returns an error. It
// ignores [WithMaxDepth]. It does not create the parents of the node. In Java the cache creates them.
func NewNodeCache(client *framework.Client, path string, opts ...Option) *NodeCache {
	c := new(NodeCache)
	opts = append(slices.Clip(opts), WithSingleNode())
	c.engine = newEngine(client, "NodeCache", "node_cache", path, c.notify, opts...)
	return c
}

func (c *NodeCache) notify(ctx context.Context, ev Event) {
	if ev.Type < Initialized && (ev.ready || !c.quiet) {
		c.listeners.Notify(ctx, ev.New, c.engine.call)
	}
}

// StartAndBuild starts the cache and waits until the node is read. The listeners receive no event for that first state.
// ctx bounds the wait. If StartAndBuild returns the error of ctx, or framework.ErrNoChroot, the cache is started and
// goes on. The other errors are those of [CuratorCache.Start]. In Java: start(true).
func (c *NodeCache) StartAndBuild(ctx context.Context) error {
	return c.startAndBuild(ctx, func() { c.quiet = true })
}

// AddListener adds a listener; remove removes it. It receives the new state of the node when it is created or its data
// changes, and nil when it is deleted. It is called as the listeners of a [CuratorCache] are. In Java: getListenable. A
// NodeCacheListener there has no argument.
func (c *NodeCache) AddListener(fn callbacks.Listener[*ChildData]) (remove func()) {
	return c.listeners.Add(fn)
}

// CurrentData returns the node, or nil if it does not exist or is not read yet. In Java: getCurrentData.
func (c *NodeCache) CurrentData() *ChildData { return c.engine.get(c.Path()) }

// Err returns the error of the last read of the node, as [CuratorCache.Err] does.
func (c *NodeCache) Err() error { return c.base.Err(c.Path()) }

// Path returns the path of the node. In Java: getPath.
func (c *NodeCache) Path() string { return c.engine.root.path }
