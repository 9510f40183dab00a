package waitqueue

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/hook"
)

// NewEndWatcher returns a watcher for a one-shot watch, and a channel that becomes ready when the watch ends: by an
// event of its node, by its removal, or with the session.
//
// A lost connection does not end it. The next connection of the session sets the watch again before any other request.
// The server then sends the event that was missed: it compares the node with the last transaction that the client has
// seen. If it cannot set the watch, the client gives that connection up.
func NewEndWatcher() (w *callbacks.Watcher, ended <-chan struct{}) {
	end := make(chan struct{}, 1)
	w, _ = hook.InPlaceWatcher(func(ev zk.Event) {
		if ev.Type == zk.EventSession && ev.State != zk.StateExpired && ev.State != zk.StateAuthFailed {
			return
		}
		select {
		case end <- struct{}{}:
		default:
		}
	}).(*callbacks.Watcher)
	return w, end
}
