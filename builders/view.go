package builders

import (
	"context"
	"sync"

	"github.com/gocurator/curator/callbacks"
)

// maxNamespaces bounds the number of remembered namespaces. The others are created again.
const maxNamespaces = 1000

// view is the state of a view of a client. It has one environment for each namespace, so that a watcher that is set
// twice in a namespace is one.
type view struct {
	fence    *fence      // of a fenced view: the nodes that writes depend on
	watchers *watcherSet // of a watcher-removing view: the watchers that are set
	library  bool        // of a view for the library: see hook.ForLibrary

	mu     sync.Mutex
	byName map[string]*environment
	forLib *view // the same view for the library; nil before its first use
}

func newView(f *fence, watchers *watcherSet) *view {
	return &view{fence: f, watchers: watchers, byName: make(map[string]*environment)}
}

// derive returns a view that is for the library if v is.
func (v *view) derive(f *fence, watchers *watcherSet) *view {
	derived := newView(f, watchers)
	derived.library = v.library
	return derived
}

// in returns the environment of a namespace in a view of the same client.
func (e *environment) in(ns string, v *view) *environment {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, ok := v.byName[ns]; ok {
		return known
	}
	var env *environment
	if all := e.root.view; v == all {
		env = newEnvironment(e.Config, v, ns, e.root)
	} else { // the namespace is the same: it is created once
		shared := *e.in(ns, all)
		env, shared.view = &shared, v
	}
	if env.err == nil {
		if len(v.byName) >= maxNamespaces { // a program may use very many names
			clear(v.byName)
		}
		v.byName[ns] = env
	}
	return env
}

// Namespace returns the name of the namespace.
func (e *environment) Namespace() string { return e.namespace.name }

// UsingNamespace returns the operations in another namespace.
func (e *environment) UsingNamespace(ns string) any { return e.in(ns, e.view) }

// Fenced returns the operations whose writes depend on nodes: see framework.Client.Fenced.
func (e *environment) Fenced(holding context.Context, lost error, nodes []string) any {
	g, err := newGuard(e, lost, -1, nodes)
	return e.in(e.Namespace(), e.derive(newFence(e, holding, g, err), e.watchers))
}

// FencedBy returns the operations whose writes depend on the nodes of a fence, which may be of another client.
func (e *environment) FencedBy(holding context.Context, fence TransactionOperation) any {
	return e.in(e.Namespace(), e.derive(newFence(e, holding, fence.guard, fence.err), e.watchers))
}

// WatcherRemoving returns the operations of a view that remembers its watchers.
func (e *environment) WatcherRemoving() any {
	return e.in(e.Namespace(), e.derive(e.fence, newWatcherSet()))
}

// ForLibrary returns the same operations for the library itself: see hook.ForLibrary.
func (e *environment) ForLibrary() any { return e.in(e.Namespace(), e.view.forLibrary()) }

// forLibrary returns the view for the library, the same one each time.
func (v *view) forLibrary() *view {
	if v.library {
		return v
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.forLib == nil {
		v.forLib = newView(v.fence, v.watchers)
		v.forLib.library = true
	}
	return v.forLib
}

// RemoveWatchers removes all watchers that a watcher-removing view remembers.
func (e *environment) RemoveWatchers(ctx context.Context) {
	ignore := func(context.Context, callbacks.Event) {}
	for set, paths := range e.watchers.takeAll() {
		for path, watch := range paths {
			r := watch.env.Watches().Remove(set.w).Guaranteed().Quietly()
			r.absolute = set.absolute
			_ = r.Locally().InBackground(ignore).ForPath(ctx, path) // refused only by a closed client, which has no watches
		}
	}
}

// WatcherCount returns the number of watchers that a watcher-removing view remembers.
func (e *environment) WatcherCount() int { return e.watchers.len() }
