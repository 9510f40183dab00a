package cache

import "github.com/gocurator/curator/framework"

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

	// Only the older caches get these.

	reloaded   // a later load is complete
	connection // the state of the connection changed
)

var eventNames = []string{
	NodeCreated: "NODE_CREATED", NodeChanged: "NODE_CHANGED", NodeDeleted: "NODE_DELETED", Initialized: "INITIALIZED",
}

// String returns Java's name of the type.
func (t EventType) String() string { return nameOf(t, eventNames) }

// nameOf returns Java's name of the type of an event.
func nameOf[T ~int](t T, names []string) string {
	if t <= 0 || int(t) >= len(names) {
		return "UNKNOWN"
	}
	return names[t]
}

// Event is a change of a node in a [CuratorCache], or [Initialized], which has no node.
type Event struct {
	Type EventType
	// Old is the previous state. It is nil if the node was created. It has only the path if a storage of the program has
	// dropped the node.
	Old *ChildData
	New *ChildData // the new state; nil if the node was deleted

	ready bool                      // sent after the first load
	state framework.ConnectionState // of a connection event
}

// Path returns the path of the node, or "" if the event has no node.
func (e Event) Path() string {
	if n := e.node(); n != nil {
		return n.Path
	}
	return ""
}

// node returns the newest state of the node.
func (e Event) node() *ChildData {
	if e.New != nil {
		return e.New
	}
	return e.Old
}
