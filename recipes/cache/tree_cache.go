package cache

import (
	"context"
	"iter"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/listeners"
)

// TreeCache is a [CuratorCache] with the events of Java's older cache. All methods are safe for concurrent use. In
// Java: TreeCache.
type TreeCache struct {
	engine    *engine
	listeners listeners.Set[TreeCacheEvent]
	lost      bool // the session was, since all was read; of the goroutine of the listeners
}

// TreeCacheEventType says what an event of a [TreeCache] tells of.
type TreeCacheEventType int

// The types of the events. In Java: TreeCacheEvent.Type.
const (
	TreeNodeAdded TreeCacheEventType = iota + 1
	TreeNodeUpdated
	TreeNodeRemoved
	TreeConnectionSuspended
	TreeConnectionReconnected
	TreeConnectionLost
	// TreeInitialized says that all is read that there was at the start, and again after each loss of the session.
	TreeInitialized
)

var treeEventNames = [...]string{
	TreeNodeAdded: "NODE_ADDED", TreeNodeUpdated: "NODE_UPDATED", TreeNodeRemoved: "NODE_REMOVED",
	TreeConnectionSuspended: "CONNECTION_SUSPENDED", TreeConnectionReconnected: "CONNECTION_RECONNECTED",
	TreeConnectionLost: "CONNECTION_LOST", TreeInitialized: "INITIALIZED",
}

// String returns Java's name of the type.
func (t TreeCacheEventType) String() string {
	if t <= 0 || int(t) >= len(treeEventNames) {
		return "UNKNOWN"
	}
	return treeEventNames[t]
}

// TreeCacheEvent is what a listener of a [TreeCache] is told. In Java: TreeCacheEvent.
type TreeCacheEvent struct {
	Type TreeCacheEventType
	// Data is the node; of a node that is removed what it was. It is nil if the event is not about a node.
	Data *ChildData
	// Old is what an updated node was before.
	Old *ChildData
}

// NewTreeCache returns a cache of the tree at path. It does no I/O; a path that cannot be is the error of Start.
func NewTreeCache(client Client, path string, opts ...Option) *TreeCache {
	c := new(TreeCache)
	c.engine = newEngine(client, "TreeCache "+path, path, settingsOf(opts), c.notify)
	return c
}

func (c *TreeCache) notify(ctx context.Context, n note) {
	out := treeEvent(n.event)
	switch n.kind {
	case loaded:
		if !n.first && !c.lost {
			return
		}
		c.lost = false
		out.Type = TreeInitialized
	case connection:
		switch n.state {
		case framework.Suspended:
			out.Type = TreeConnectionSuspended
		case framework.Lost:
			c.lost = true
			out.Type = TreeConnectionLost
		case framework.Reconnected:
			out.Type = TreeConnectionReconnected
		default:
			return
		}
	}
	c.listeners.Notify(ctx, out, c.engine.guard())
}

func treeEvent(ev Event) TreeCacheEvent {
	switch ev.Type {
	case NodeCreated:
		return TreeCacheEvent{Type: TreeNodeAdded, Data: ev.New}
	case NodeChanged:
		return TreeCacheEvent{Type: TreeNodeUpdated, Data: ev.New, Old: ev.Old}
	case NodeDeleted:
		return TreeCacheEvent{Type: TreeNodeRemoved, Data: ev.Old}
	}
	return TreeCacheEvent{Type: TreeInitialized}
}

// Start begins to fill the cache, and does not wait. In Java: start.
func (c *TreeCache) Start() error { return c.engine.start(nil) }

// Close ends the cache as [CuratorCache.Close] does.
func (c *TreeCache) Close() error {
	c.engine.close()
	return nil
}

// Listenable returns the listeners, which are called as those of a [CuratorCache] are. In Java: getListenable.
func (c *TreeCache) Listenable() callbacks.Listenable[TreeCacheEvent] { return &c.listeners }

// CurrentData returns a node, nil if it is not in the cache. In Java: getCurrentData.
func (c *TreeCache) CurrentData(path string) *ChildData { return c.engine.get(path) }

// CurrentChildren returns the children of a node by name; nil if the node is not in the cache. In Java:
// getCurrentChildren.
func (c *TreeCache) CurrentChildren(path string) map[string]*ChildData {
	return c.engine.children(path)
}

// All yields the nodes as [CuratorCache.All] does. In Java: iterator.
func (c *TreeCache) All() iter.Seq2[string, *ChildData] { return c.engine.all() }

// Size returns the number of nodes. In Java: size.
func (c *TreeCache) Size() int { return c.engine.size() }

// Err is as [CuratorCache.Err].
func (c *TreeCache) Err(path string) error { return c.engine.err(path) }
