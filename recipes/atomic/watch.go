package atomic

import (
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
)

// watch notices the deletion of a node whose version is remembered. A node that is created again counts its versions
// from 0, so a write of a remembered version could meet another value. The watch is one of the node's children: changes
// of its data do not use it up.
type watch struct {
	client  *framework.Client
	path    string
	watcher atomic.Pointer[callbacks.Watcher]
	set     atomic.Bool
	epoch   atomic.Int64 // grows when the node may have been deleted
}

func newWatch(client *framework.Client, path string) *watch {
	w := &watch{client: client, path: path}
	w.watcher.Store(w.newWatcher())
	return w
}

func (w *watch) newWatcher() *callbacks.Watcher {
	return hook.InPlaceWatcher(w.onEvent).(*callbacks.Watcher)
}

func (w *watch) onEvent(ev zk.Event) {
	lost := ev.State == zk.StateExpired || ev.State == zk.StateAuthFailed
	if ev.Type != zk.EventSession || lost { // a lost connection does not end it, but delays its event
		w.set.Store(false)
	}
	w.epoch.Add(1)
}

// submit sets the watch, if it is not set. set waits for the answer.
func (w *watch) submit(ctx context.Context) (set func()) {
	if w.set.Swap(true) {
		return func() {}
	}
	list := w.client.GetChildren().UsingWatcher(w.watcher.Load()).Submit(ctx, w.path)
	return func() {
		if _, err := list.Wait(ctx); err != nil {
			w.set.Store(false)
		}
	}
}

// covers reports whether the node cannot have been deleted since epoch, as far as this client has heard.
func (w *watch) covers(epoch int64) bool { return w.set.Load() && w.epoch.Load() == epoch }

// remove removes the watch in the background. The next one has another watcher, which a late removal does not touch: it
// takes its place first, so that a submit beside remove does not set a watch that is removed at once.
func (w *watch) remove(ctx context.Context) {
	old := w.watcher.Swap(w.newWatcher())
	if w.set.Swap(false) {
		waitqueue.Unwatch(ctx, w.client, old, w.path)
	}
}
