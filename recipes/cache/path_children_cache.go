package cache

import (
	"context"
	"slices"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/zkpath"
)

// PathChildrenCache keeps a copy of the children of a node. It is a [CuratorCache] of depth 1 with the events of
// Java's older cache. All methods are safe for concurrent use. In Java: PathChildrenCache.
type PathChildrenCache struct {
	base
	listeners listeners.Set[PathChildrenCacheEvent]
	mode      StartMode
}

// StartMode selects the events that a [PathChildrenCache] sends for the children that exist at its start. In Java:
// PathChildrenCache.StartMode.
type StartMode int

// The start modes.
const (
	// Normal sends a [ChildAdded] for each child.
	Normal StartMode = iota
	// BuildInitialCache makes Start wait until the children are read. No events are sent for them.
	BuildInitialCache
	// PostInitializedEvent sends a [ChildAdded] for each child and then one [ChildrenInitialized].
	PostInitializedEvent
)

// PathChildrenCacheEventType is the type of an event of a [PathChildrenCache]. In Java: PathChildrenCacheEvent.Type.
type PathChildrenCacheEventType int

// The event types.
const (
	// ChildAdded means that a child was created.
	ChildAdded PathChildrenCacheEventType = iota + 1
	// ChildUpdated means that the data of a child changed.
	ChildUpdated
	// ChildRemoved means that a child was deleted.
	ChildRemoved
	// ChildrenConnectionSuspended means that the client lost its connection.
	ChildrenConnectionSuspended
	// ChildrenConnectionReconnected means that the client is connected, for the first time or again.
	ChildrenConnectionReconnected
	// ChildrenConnectionLost means that the client lost its session. The cache keeps its children, and compares them in
	// the next session.
	ChildrenConnectionLost
	// ChildrenInitialized means that the first load is complete. A [PathChildrenCache] sends it with
	// [PostInitializedEvent] only, [ForPathChildrenCache] always.
	ChildrenInitialized
)

var childrenEventNames = []string{
	ChildAdded: "CHILD_ADDED", ChildUpdated: "CHILD_UPDATED", ChildRemoved: "CHILD_REMOVED",
	ChildrenConnectionSuspended: "CONNECTION_SUSPENDED", ChildrenConnectionReconnected: "CONNECTION_RECONNECTED",
	ChildrenConnectionLost: "CONNECTION_LOST", ChildrenInitialized: "INITIALIZED",
}

// String returns Java's name of the type.
func (t PathChildrenCacheEventType) String() string { return nameOf(t, childrenEventNames) }

// childrenEvents are the types for those of a CuratorCache.
var childrenEvents = map[EventType]PathChildrenCacheEventType{
	NodeCreated: ChildAdded, NodeChanged: ChildUpdated, NodeDeleted: ChildRemoved, Initialized: ChildrenInitialized,
}

var childrenConnectionEvents = map[framework.ConnectionState]PathChildrenCacheEventType{
	framework.Suspended: ChildrenConnectionSuspended, framework.Lost: ChildrenConnectionLost,
	framework.Connected: ChildrenConnectionReconnected, framework.Reconnected: ChildrenConnectionReconnected,
}

// PathChildrenCacheEvent is an event of a [PathChildrenCache]. In Java: PathChildrenCacheEvent.
type PathChildrenCacheEvent struct {
	Type PathChildrenCacheEventType
	// Data is the child. For a removed child it is the last state in the cache. It is nil if the event is not about a
	// child.
	Data *ChildData
	// InitialData contains the children, sorted by path, if the type is ChildrenInitialized.
	InitialData []*ChildData
}

// NewPathChildrenCache returns a cache of the children of the node at path. It does no I/O. If path is invalid, Start
// returns an error. It ignores [WithMaxDepth]. It does not create the node. In Java the cache creates it.
func NewPathChildrenCache(client *framework.Client, path string, opts ...Option) *PathChildrenCache {
	c := new(PathChildrenCache)
	opts = append(slices.Clip(opts), WithMaxDepth(1))
	c.engine = newEngine(client, "PathChildrenCache", "path_children_cache", path, c.notify, opts...)
	return c
}

func (c *PathChildrenCache) notify(ctx context.Context, ev Event) {
	out, ok := childEvent(c.engine.root.path, ev)
	switch {
	case ev.Type == connection:
		out.Type, ok = childrenConnectionEvents[ev.state]
	case ev.Type == Initialized && c.mode == PostInitializedEvent:
		out.InitialData = c.CurrentData()
	case ev.Type == Initialized:
		ok = false
	case !ev.ready && c.mode == BuildInitialCache:
		ok = false
	}
	if ok {
		c.listeners.Notify(ctx, out, c.engine.call)
	}
}

// childEvent converts ev to an event of a child of path. ok is false if ev is about another node.
func childEvent(path string, ev Event) (out PathChildrenCacheEvent, ok bool) {
	out.Type, ok = childrenEvents[ev.Type]
	if out.Data = ev.node(); out.Data != nil && (out.Data.Path == path || zkpath.Parent(out.Data.Path) != path) {
		ok = false
	}
	return out, ok
}

// Start begins to fill the cache. It waits only with [BuildInitialCache], until the children are read. ctx bounds that
// wait. If Start returns the error of ctx, or framework.ErrNoChroot, the cache is started and goes on. An unknown mode
// starts nothing: the error matches [framework.ErrBadArguments]. The other errors are those of [CuratorCache.Start]. In
// Java: start.
func (c *PathChildrenCache) Start(ctx context.Context, mode StartMode) error {
	if mode < Normal || mode > PostInitializedEvent {
		return errtext.Wrap(framework.ErrBadArguments, "cache", "start mode %d", mode)
	}
	set := func() { c.mode = mode }
	if mode == BuildInitialCache {
		return c.startAndBuild(ctx, set)
	}
	return c.engine.start(set)
}

// AddListener adds a listener to the events of the cache; remove removes it. It is called as the listeners of a
// [CuratorCache] are. In Java: getListenable.
func (c *PathChildrenCache) AddListener(fn callbacks.Listener[PathChildrenCacheEvent]) (remove func()) {
	return c.listeners.Add(fn)
}

// CurrentData returns the children, sorted by path. In Java: getCurrentData.
func (c *PathChildrenCache) CurrentData() []*ChildData {
	return slices.DeleteFunc(c.engine.snapshot(), func(n *ChildData) bool { return n.Path == c.engine.root.path })
}

// CurrentDataOf returns the child at the full path, or nil if it is not in the cache. In Java:
// getCurrentData(fullPath).
func (c *PathChildrenCache) CurrentDataOf(path string) *ChildData {
	if path == c.engine.root.path {
		return nil
	}
	return c.engine.get(path)
}

// RebuildNode reads one child again and waits for the answer. path is its full path. RebuildNode returns an error if
// path is invalid or is no child of the node, and the errors of [PathChildrenCache.Rebuild]. In Java: rebuildNode.
func (c *PathChildrenCache) RebuildNode(ctx context.Context, path string) error {
	return c.engine.rebuildNode(ctx, path)
}

// ClearAndRefresh empties the cache without an event and reads everything again, with a [ChildAdded] for each child.
// It does not wait. It returns [ErrNotStarted] or [ErrClosed]. In Java: clearAndRefresh.
func (c *PathChildrenCache) ClearAndRefresh() error { return c.engine.clearAndRefresh() }
