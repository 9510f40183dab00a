package builders

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/wire"
	"github.com/gocurator/curator/zkpath"
)

// bind returns w for the registry of the connection. absolute means that it watches [ConfigNode], whatever the chroot.
func (e *environment) bind(w *callbacks.Watcher, absolute bool) wire.Watcher {
	if e.library {
		hook.MarkOfLibrary(w)
	}
	return boundWatcher{setWatcher{e.namespace.name, w, absolute}, e.root, e.watchers}
}

// boundWatcher is a watcher in one namespace of a client. It is comparable: the same watcher set through views of the
// same namespace is one.
type boundWatcher struct {
	setWatcher
	root     *environment
	watchers *watcherSet
}

// Notify runs on the goroutine that reads the connection.
func (b boundWatcher) Notify(ev zk.Event) {
	switch {
	case ev.Type == zk.EventSession:
	case b.absolute: // the chroot may contain the configuration, and ev.Path is without it
		ev.Path = ConfigNode
	default:
		ev.Path = zkpath.StripNamespace(b.namespace, ev.Path)
	}
	if b.watchers != nil {
		b.watchers.notified(b.setWatcher, ev)
	}
	b.root.Telemetry.WatchEvent(ev)
	dispatch := b.root.Dispatch
	if hook.IsOfLibrary(b.w) {
		dispatch = b.root.DispatchLibrary
	}
	if b.root.Telemetry.WatchSpans() {
		plain := dispatch
		dispatch = func(run func(context.Context)) {
			plain(func(ctx context.Context) { b.root.Telemetry.Watched(ctx, ev, hook.WatchSpan(b.w), run) })
		}
	}
	hook.Deliver(b.w, ev, dispatch)
}
