package cache

import (
	"context"
	"slices"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/zkpath"
)

// PathChildrenCache keeps a copy of the children of a node. It is a [CuratorCache] of depth 1 with the events of Java's
// older cache. All methods are safe for concurrent use. In Java: PathChildrenCache.
type PathChildrenCache struct {
	engine    *engine
	listeners listeners.Set[PathChildrenCacheEvent]
	mode      StartMode
}

// StartMode says what is told of the children that there are when a [PathChildrenCache] is started. In Java:
// PathChildrenCache.StartMode.
type StartMode int

// The start modes.
const (
	// Normal has a [ChildAdded] for each.
	Normal StartMode = iota
	// BuildInitialCache has Start wait until they are read, and tells nothing of them.
	BuildInitialCache
	// PostInitializedEvent has a [ChildAdded] for each and then one [ChildrenInitialized].
	PostInitializedEvent
)

// PathChildrenCacheEventType says what an event of a [PathChildrenCache] tells of.
type PathChildrenCacheEventType int

// The types of the events. In Java: PathChildrenCacheEvent.Type.
const (
	ChildAdded PathChildrenCacheEventType = iota + 1
	ChildUpdated
	ChildRemoved
	ChildrenConnectionSuspended
	ChildrenConnectionReconnected
	ChildrenConnectionLost
	ChildrenInitialized
)

var childrenEventNames = [...]string{
	ChildAdded: "CHILD_ADDED", ChildUpdated: "CHILD_UPDATED", ChildRemoved: "CHILD_REMOVED",
	ChildrenConnectionSuspended: "CONNECTION_SUSPENDED", ChildrenConnectionReconnected: "CONNECTION_RECONNECTED",
	ChildrenConnectionLost: "CONNECTION_LOST", ChildrenInitialized: "INITIALIZED",
}

// String returns Java's name of the type.
func (t PathChildrenCacheEventType) String() string {
	if t <= 0 || int(t) >= len(childrenEventNames) {
		return "UNKNOWN"
	}
	return childrenEventNames[t]
}

// PathChildrenCacheEvent is what a listener of a [PathChildrenCache] is told. In Java: PathChildrenCacheEvent.
type PathChildrenCacheEvent struct {
	Type PathChildrenCacheEventType
	// Data is the child; of a child that is removed what it was. It is nil if the event is not about a child.
	Data *ChildData
	// InitialData has the children when the type is ChildrenInitialized, sorted by path.
	InitialData []*ChildData
}

// NewPathChildrenCache returns a cache of the children of the node at path. It does no I/O; a path that cannot be is
// the error of Start. In Java the node is created; here it is not.
func NewPathChildrenCache(client Client, path string, opts ...Option) *PathChildrenCache {
	c := new(PathChildrenCache)
	s := settingsOf(opts)
	s.maxDepth = 1
	c.engine = newEngine(client, "PathChildrenCache "+path, path, s, c.notify)
	return c
}

func (c *PathChildrenCache) notify(ctx context.Context, n note) {
	out := PathChildrenCacheEvent{}
	switch n.kind {
	case change:
		ev, ok := childEvent(c.engine.root.path, n.event)
		if !ok || !n.ready && c.mode == BuildInitialCache {
			return
		}
		out = ev
	case loaded:
		if !n.first || c.mode != PostInitializedEvent {
			return
		}
		out = PathChildrenCacheEvent{Type: ChildrenInitialized, InitialData: c.CurrentData()}
	case connection:
		switch n.state {
		case framework.Suspended:
			out.Type = ChildrenConnectionSuspended
		case framework.Lost:
			out.Type = ChildrenConnectionLost
		case framework.Connected, framework.Reconnected:
			out.Type = ChildrenConnectionReconnected
		default:
			return
		}
	}
	c.listeners.Notify(ctx, out, c.engine.guard())
}

// childEvent returns the event of a child of path that ev is, if it is one.
func childEvent(path string, ev Event) (out PathChildrenCacheEvent, ok bool) {
	if ev.Type == Initialized {
		return PathChildrenCacheEvent{Type: ChildrenInitialized}, true
	}
	if at := ev.Path(); at == path || zkpath.Parent(at) != path {
		return out, false
	}
	switch ev.Type {
	case NodeCreated:
		return PathChildrenCacheEvent{Type: ChildAdded, Data: ev.New}, true
	case NodeChanged:
		return PathChildrenCacheEvent{Type: ChildUpdated, Data: ev.New}, true
	}
	return PathChildrenCacheEvent{Type: ChildRemoved, Data: ev.Old}, true
}

// Start begins to fill the cache. ctx bounds the waiting of [BuildInitialCache]; when it ends first, the cache is
// started. In Java: start.
func (c *PathChildrenCache) Start(ctx context.Context, mode StartMode) error {
	set := func() { c.mode = mode }
	if mode == BuildInitialCache {
		return startAndBuild(ctx, c.engine, set)
	}
	return c.engine.start(set)
}

// Close ends the cache as [CuratorCache.Close] does.
func (c *PathChildrenCache) Close() error {
	c.engine.close()
	return nil
}

// Listenable returns the listeners, which are called as those of a [CuratorCache] are. In Java: getListenable.
func (c *PathChildrenCache) Listenable() callbacks.Listenable[PathChildrenCacheEvent] {
	return &c.listeners
}

// CurrentData returns the children, sorted by path. In Java: getCurrentData.
func (c *PathChildrenCache) CurrentData() []*ChildData {
	return slices.DeleteFunc(c.engine.snapshot(), func(n *ChildData) bool { return n.Path == c.engine.root.path })
}

// CurrentDataOf returns a child, nil if it is not in the cache. In Java: getCurrentData(fullPath).
func (c *PathChildrenCache) CurrentDataOf(path string) *ChildData {
	if path == c.engine.root.path {
		return nil
	}
	return c.engine.get(path)
}

// Err is as [CuratorCache.Err].
func (c *PathChildrenCache) Err(path string) error { return c.engine.err(path) }

// Rebuild reads all again, and waits for it. What has changed is told. In Java: rebuild, which tells nothing.
func (c *PathChildrenCache) Rebuild(ctx context.Context) error { return c.engine.rebuild(ctx) }

// RebuildNode reads one child again, and waits for it. In Java: rebuildNode.
func (c *PathChildrenCache) RebuildNode(ctx context.Context, path string) error {
	return c.engine.rebuildNode(ctx, path)
}

// ClearAndRefresh forgets all, without an event, and reads it again, with a [ChildAdded] for each child. It does not
// wait. In Java: clearAndRefresh.
func (c *PathChildrenCache) ClearAndRefresh() error { return c.engine.clearAndRefresh() }
