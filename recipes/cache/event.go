package cache

// EventType says what has happened to a node. In Java: CuratorCacheListener.Type.
type EventType int

// The event types.
const (
	NodeCreated EventType = iota + 1
	NodeChanged
	NodeDeleted
	// Initialized says, once, that all nodes that there were at the start are in the cache. In Java:
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

// Event is a change of a node in the cache.
type Event struct {
	Type EventType
	Old  *ChildData // nil of a node that is created
	New  *ChildData // nil of a node that is deleted

	ready bool // the cache is initialized
}

// Path returns the path of the node, "" of Initialized.
func (e Event) Path() string {
	switch {
	case e.New != nil:
		return e.New.Path
	case e.Old != nil:
		return e.Old.Path
	}
	return ""
}
