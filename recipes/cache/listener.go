package cache

import (
	"context"

	"github.com/gocurator/curator/callbacks"
)

// Listener takes the events of a [CuratorCache]. The functions whose names begin with For make one, as Java's
// CuratorCacheListenerBuilder does.
type Listener = callbacks.Listener[Event]

// ForAll returns a listener for all events of nodes. In Java: forAll.
func ForAll(fn func(ctx context.Context, ev Event)) Listener {
	return func(ctx context.Context, ev Event) {
		if ev.Type != Initialized {
			fn(ctx, ev)
		}
	}
}

// ForCreates returns a listener for nodes that are created. In Java: forCreates.
func ForCreates(fn func(ctx context.Context, node *ChildData)) Listener {
	return forType(NodeCreated, func(ctx context.Context, ev Event) { fn(ctx, ev.New) })
}

// ForChanges returns a listener for nodes whose data is changed. In Java: forChanges.
func ForChanges(fn func(ctx context.Context, old, node *ChildData)) Listener {
	return forType(NodeChanged, func(ctx context.Context, ev Event) { fn(ctx, ev.Old, ev.New) })
}

// ForCreatesAndChanges returns a listener for nodes that are created, of which old is nil, and those whose data is
// changed. In Java: forCreatesAndChanges.
func ForCreatesAndChanges(fn func(ctx context.Context, old, node *ChildData)) Listener {
	return func(ctx context.Context, ev Event) {
		if ev.Type == NodeCreated || ev.Type == NodeChanged {
			fn(ctx, ev.Old, ev.New)
		}
	}
}

// ForDeletes returns a listener for nodes that are deleted. In Java: forDeletes.
func ForDeletes(fn func(ctx context.Context, node *ChildData)) Listener {
	return forType(NodeDeleted, func(ctx context.Context, ev Event) { fn(ctx, ev.Old) })
}

// ForInitialized returns a listener that is called once, when all nodes that there were at the start are in the cache.
// In Java: forInitialized.
func ForInitialized(fn func(ctx context.Context)) Listener {
	return forType(Initialized, func(ctx context.Context, _ Event) { fn(ctx) })
}

// ForNodeCache returns a listener that is called as one of a [NodeCache] is: without saying what has happened. In Java:
// forNodeCache.
func ForNodeCache(fn func(ctx context.Context)) Listener {
	return ForAll(func(ctx context.Context, _ Event) { fn(ctx) })
}

// ForPathChildrenCache returns a listener that hears of the children of a node as one of a [PathChildrenCache] does. In
// Java: forPathChildrenCache.
func ForPathChildrenCache(path string, fn callbacks.Listener[PathChildrenCacheEvent]) Listener {
	return func(ctx context.Context, ev Event) {
		if out, ok := childEvent(path, ev); ok {
			fn(ctx, out)
		}
	}
}

// ForTreeCache returns a listener that hears what one of a [TreeCache] does. In Java: forTreeCache.
func ForTreeCache(fn callbacks.Listener[TreeCacheEvent]) Listener {
	return func(ctx context.Context, ev Event) { fn(ctx, treeEvent(ev)) }
}

// AfterInitialized returns a listener to which events are passed on once all nodes that there were at the start are in
// the cache. In Java: afterInitialized.
func AfterInitialized(listener Listener) Listener {
	return func(ctx context.Context, ev Event) {
		if ev.ready {
			listener(ctx, ev)
		}
	}
}

func forType(typ EventType, fn Listener) Listener {
	return func(ctx context.Context, ev Event) {
		if ev.Type == typ {
			fn(ctx, ev)
		}
	}
}
