package cache

import (
	"context"
	"slices"

	"github.com/gocurator/curator/callbacks"
)

// Listener receives the events of a [CuratorCache]. The For functions return listeners for some of the events, as
// Java's CuratorCacheListenerBuilder does.
type Listener = callbacks.Listener[Event]

// ForAll returns a listener for all node events, without [Initialized]. In Java: forAll.
func ForAll(fn func(ctx context.Context, ev Event)) Listener {
	return forTypes(fn, NodeCreated, NodeChanged, NodeDeleted)
}

// ForCreates returns a listener for created nodes. In Java: forCreates.
func ForCreates(fn func(ctx context.Context, node *ChildData)) Listener {
	return forTypes(func(ctx context.Context, ev Event) { fn(ctx, ev.New) }, NodeCreated)
}

// ForChanges returns a listener for nodes whose data changed. In Java: forChanges.
func ForChanges(fn func(ctx context.Context, old, node *ChildData)) Listener {
	return forTypes(func(ctx context.Context, ev Event) { fn(ctx, ev.Old, ev.New) }, NodeChanged)
}

// ForCreatesAndChanges returns a listener for created nodes and for nodes whose data changed. old is nil for a
// created node. In Java: forCreatesAndChanges.
func ForCreatesAndChanges(fn func(ctx context.Context, old, node *ChildData)) Listener {
	return forTypes(func(ctx context.Context, ev Event) { fn(ctx, ev.Old, ev.New) }, NodeCreated, NodeChanged)
}

// ForDeletes returns a listener for deleted nodes. node is the last state in the cache. In Java: forDeletes.
func ForDeletes(fn func(ctx context.Context, node *ChildData)) Listener {
	return forTypes(func(ctx context.Context, ev Event) { fn(ctx, ev.Old) }, NodeDeleted)
}

// ForInitialized returns a listener that is called once, when the first load is complete: see [CuratorCache.Ready].
// In Java: forInitialized.
func ForInitialized(fn func(ctx context.Context)) Listener {
	return forTypes(func(ctx context.Context, _ Event) { fn(ctx) }, Initialized)
}

// ForNodeCache returns a listener that is called for each node event, without the event, as Java's NodeCacheListener
// is. In Java: forNodeCache.
func ForNodeCache(fn func(ctx context.Context)) Listener {
	return ForAll(func(ctx context.Context, _ Event) { fn(ctx) })
}

// ForPathChildrenCache returns a listener for the children of the node at path. fn receives the events of a
// [PathChildrenCache], except those of the connection. A [ChildrenInitialized] has no InitialData here. In Java:
// forPathChildrenCache.
func ForPathChildrenCache(path string, fn callbacks.Listener[PathChildrenCacheEvent]) Listener {
	return func(ctx context.Context, ev Event) {
		if out, ok := childEvent(path, ev); ok {
			fn(ctx, out)
		}
	}
}

// ForTreeCache returns a listener for all events. fn receives the events of a [TreeCache], except those of the
// connection. In Java: forTreeCache.
func ForTreeCache(fn callbacks.Listener[TreeCacheEvent]) Listener {
	return func(ctx context.Context, ev Event) { fn(ctx, treeEvent(ev)) }
}

// AfterInitialized returns a listener that drops the events of the first load and passes [Initialized] and all later
// events to listener. In Java: afterInitialized.
func AfterInitialized(listener Listener) Listener {
	return func(ctx context.Context, ev Event) {
		if ev.ready {
			listener(ctx, ev)
		}
	}
}

// forTypes returns a listener for the events of some types.
func forTypes(fn Listener, types ...EventType) Listener {
	return func(ctx context.Context, ev Event) {
		if slices.Contains(types, ev.Type) {
			fn(ctx, ev)
		}
	}
}
