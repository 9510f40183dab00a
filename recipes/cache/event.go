package cache

// EventType is the type of an event of a [CuratorCache]. In Java: CuratorCacheListener.Type.
type EventType int

// The event types.
const (
	// NodeCreated means that a node was created, or that the first load found it.
	NodeCreated EventType = iota + 1
	// NodeChanged means that the data of a node was set.
	NodeChanged
	// NodeDeleted means that a node was deleted.
	NodeDeleted
	// Initialized means that the first load is complete: see [CuratorCache.Ready]. It is sent once. In Java:
	// CuratorCacheListener.initialized.
	Initialized
)

// String returns Java's name of the type.
func (t EventType) String() string {
	switch t {
	case NodeCreated:
		return "NODE_CREATED"
	case NodeChanged:
		return "NODE_CHANGED"
	case NodeDeleted:
		return "NODE_DELETED"
	case Initialized:
		return "INITIALIZED"
	}
	return "UNKNOWN"
}

// Event is a change of a node in a [CuratorCache], or [Initialized], which has no node.
type Event struct {
	Type EventType
	Old  *ChildData // the previous state; nil if the node was created
	New  *ChildData // the new state; nil if the node was deleted

	ready bool // sent after the first load
}

// Path returns the path of the node, or "" if the event has no node.
func (e Event) Path() string {
	switch {
	case e.New != nil:
		return e.New.Path
	case e.Old != nil:
		return e.Old.Path
	}
	return ""
}
