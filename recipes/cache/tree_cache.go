package cache

import (
	"context"
	"iter"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/listeners"
)

// TreeCache keeps a copy of a tree. It is a [CuratorCache] with the events of Java's older cache. All methods are
// safe for concurrent use. In Java: TreeCache.
type TreeCache struct {
	base
	listeners listeners.Set[TreeCacheEvent]
	lost      bool // the session was lost since the last TreeInitialized; used by the listener goroutine only
}

// TreeCacheEventType is the type of an event of a [TreeCache]. In Java: TreeCacheEvent.Type.
type TreeCacheEventType int

// The event types.
const (
	// TreeNodeAdded means that a node was created.
	TreeNodeAdded TreeCacheEventType = iota + 1
	// TreeNodeUpdated means that the data of a node changed.
	TreeNodeUpdated
	// TreeNodeRemoved means that a node was deleted.
	TreeNodeRemoved
	// TreeConnectionSuspended means that the client lost its connection.
	TreeConnectionSuspended
	// TreeConnectionReconnected means that the client is connected again.
	TreeConnectionReconnected
	// TreeConnectionLost means that the client lost its session. The cache keeps its nodes, and compares them in the
	// next session.
	TreeConnectionLost
	// TreeInitialized means that a load is complete: the first one, and the next one after each loss of the session.
	TreeInitialized
)

var treeEventNames = []string{
	TreeNodeAdded: "NODE_ADDED", TreeNodeUpdated: "NODE_UPDATED", TreeNodeRemoved: "NODE_REMOVED",
	TreeConnectionSuspended: "CONNECTION_SUSPENDED", TreeConnectionReconnected: "CONNECTION_RECONNECTED",
	TreeConnectionLost: "CONNECTION_LOST", TreeInitialized: "INITIALIZED",
}

// String returns Java's name of the type.
func (t TreeCacheEventType) String() string { return nameOf(t, treeEventNames) }

// treeEvents are the types for those of a CuratorCache.
var treeEvents = map[EventType]TreeCacheEventType{
	NodeCreated: TreeNodeAdded, NodeChanged: TreeNodeUpdated, NodeDeleted: TreeNodeRemoved,
	Initialized: TreeInitialized, reloaded: TreeInitialized,
}

var treeConnectionEvents = map[framework.ConnectionState]TreeCacheEventType{
	framework.Suspended: TreeConnectionSuspended, framework.Lost: TreeConnectionLost,
	framework.Reconnected: TreeConnectionReconnected,
}

// TreeCacheEvent is an event of a [TreeCache]. In Java: TreeCacheEvent.
type TreeCacheEvent struct {
	Type TreeCacheEventType
	// Data is the node. For a removed node it is the last state in the cache. It is nil if the event is not about a
	// node.
	Data *ChildData
	// Old is the previous state of an updated node, else nil.
	Old *ChildData
}

// NewTreeCache returns a cache of the tree at path. It does no I/O. If path is invalid, Start returns an error.
func NewTreeCache(client *framework.Client, path string, opts ...Option) *TreeCache {
	c := new(TreeCache)
	c.engine = newEngine(client, "TreeCache", "tree_cache", path, c.notify, opts...)
	return c
}

func (c *TreeCache) notify(ctx context.Context, ev Event) {
	out, ok := treeEvent(ev), true
	switch {
	case ev.Type == connection:
		c.lost = c.lost || ev.state == framework.Lost
		out.Type, ok = treeConnectionEvents[ev.state]
	case ev.Type >= Initialized:
		ok = c.lost || ev.Type == Initialized
		c.lost = false
	}
	if ok {
		c.listeners.Notify(ctx, out, c.engine.call)
	}
}

func treeEvent(ev Event) TreeCacheEvent {
	out := TreeCacheEvent{Type: treeEvents[ev.Type], Data: ev.node()}
	if ev.Type == NodeChanged {
		out.Old = ev.Old
	}
	return out
}

// AddListener adds a listener to the events of the cache; remove removes it. It is called as the listeners of a
// [CuratorCache] are. In Java: getListenable.
func (c *TreeCache) AddListener(fn callbacks.Listener[TreeCacheEvent]) (remove func()) {
	return c.listeners.Add(fn)
}

// CurrentData returns the node at path, or nil if it is not in the cache. In Java: getCurrentData.
func (c *TreeCache) CurrentData(path string) *ChildData { return c.engine.get(path) }

// CurrentChildren returns the children of a node, keyed by name, or nil if the node is not in the cache. In Java:
// getCurrentChildren.
func (c *TreeCache) CurrentChildren(path string) map[string]*ChildData {
	return c.engine.children(path)
}

// All returns an iterator over a snapshot of the cache, as [CuratorCache.All] does. In Java: iterator.
func (c *TreeCache) All() iter.Seq2[string, *ChildData] { return c.engine.all() }

// Size returns the number of nodes in the cache. In Java: size.
func (c *TreeCache) Size() int { return c.engine.size() }
