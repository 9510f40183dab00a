package cache

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/waitqueue"
)

// PersistentWatcher keeps a persistent watch across connections and sessions. Changes that happen without a
// connection have no event: add a reset listener and read the nodes again when it is called. The server must be 3.6
// or newer. All methods are safe for concurrent use. In Java: PersistentWatcher.
type PersistentWatcher struct {
	path      string
	mode      builders.AddWatchMode
	watcher   *callbacks.Watcher
	listeners listeners.Set[zk.Event]
	resets    listeners.Set[struct{}]
	*lifecycle

	// These fields are used with life held.
	removeState func()
	retry       *time.Timer
	failures    int
	unsupported bool // the server of the last answer does not know the watch: only a retry requests it
}

// NewPersistentWatcher returns a watcher of the node at path. If recursive is set, it watches everything below the
// node too. It does no I/O. If path is invalid, Start returns an error.
func NewPersistentWatcher(client *framework.Client, path string, recursive bool) *PersistentWatcher {
	w := &PersistentWatcher{
		path: path, mode: builders.PersistentWatch, lifecycle: newLifecycle(client, "PersistentWatcher "+path),
	}
	if recursive {
		w.mode = builders.PersistentRecursiveWatch
	}
	w.watcher = callbacks.NewWatcher(w.onEvent)
	return w
}

// AddListener adds a listener to the node events; remove removes it. The listeners are called one at a time, on a
// goroutine of the watcher. The context of a listener ends with Close. In Java: getListenable.
func (w *PersistentWatcher) AddListener(fn callbacks.Listener[zk.Event]) (remove func()) {
	return w.listeners.Add(fn)
}

// AddResetListener adds a listener that is called each time the watch is set, on the first connection and on every
// later one; remove removes it. Earlier changes may have had no event. These listeners and those of AddListener are
// called in turn on the same goroutine, and their contexts end with Close. In Java: getResetListenable.
func (w *PersistentWatcher) AddResetListener(fn callbacks.Listener[struct{}]) (remove func()) {
	return w.resets.Add(fn)
}

// Start begins to watch and does not wait. If the watch cannot be set, the watcher retries after a pause. It reports
// the error to the client's unhandled-error listeners, except that of a lost connection. They also get
// framework.ErrNoChroot if the chroot does not exist; the watch waits for it. Start returns an error if the path is
// invalid, [ErrStarted] on a second call, and [ErrClosed] after Close. In Java: start.
func (w *PersistentWatcher) Start() error {
	return w.begin(w.path, func() {
		w.removeState = w.client.AddConnectionStateListener(
			func(context.Context, framework.ConnectionState) { w.set(false) })
		w.retry = time.AfterFunc(0, func() { w.set(true) })
	}, func() {
		w.removeState()
		w.retry.Stop()
		w.unwatch(w.watcher, w.path)
	})
}

// Close stops the watcher and removes the watch in the background. It always returns nil. As with
// [CuratorCache.Close], the context of a listener call that is under way ends, and Close does not wait for it. In Java:
// close.
func (w *PersistentWatcher) Close() error {
	w.end(ErrClosed)
	return nil
}

// onEvent notifies the listeners of a node event, and of the end of the watch on a server that has no such watches. It
// sets a watch again that the program has removed with all watchers of the path. It does not block.
func (w *PersistentWatcher) onEvent(_ context.Context, ev zk.Event) {
	switch {
	case ev.Type == zk.EventSession:
	case ev.Type == zk.EventNotWatching && ev.Err == nil:
		w.set(false)
	default:
		w.do(func(ctx context.Context) { w.listeners.Notify(ctx, ev, w.call) })
	}
}

// set requests the watch, in one attempt: after a lost connection, the next connection requests it again. A server that
// does not know the request closes the connection. Then a request on the next connection would end that one too, so
// only a retry requests the watch again.
func (w *PersistentWatcher) set(isRetry bool) {
	w.life.Lock()
	defer w.life.Unlock()
	if w.ctx.Err() != nil || w.unsupported && !isRetry {
		return
	}
	if !w.client.IsConnected() {
		if w.unsupported { // this call is a retry
			w.retry.Reset(pauseAfter(w.failures))
		}
		return
	}
	err := w.client.Watches().Add().WithMode(w.mode).UsingWatcher(w.watcher).
		InBackground(func(_ context.Context, ev callbacks.Event) { w.onAnswer(ev.Err) }).
		WithUnhandledErrorListener(ignoreError).ForPath(builders.Pipelined(w.ctx), w.path)
	if err != nil {
		w.retryLater(err)
	}
}

// onAnswer handles the answer to the request of the watch.
func (w *PersistentWatcher) onAnswer(err error) {
	w.life.Lock()
	defer w.life.Unlock()
	w.unsupported = err != nil && (w.unsupported || errors.Is(err, framework.ErrUnimplemented))
	if err != nil {
		w.retryLater(err)
		return
	}
	w.failures = 0
	w.do(func(ctx context.Context) { w.resets.Notify(ctx, struct{}{}, w.call) })
	if hook.HasChroot(w.client) {
		_ = waitqueue.FindChroot(w.client).InBackground(w.reportChroot).WithUnhandledErrorListener(ignoreError).
			ForPath(builders.Pipelined(w.ctx), "/")
	}
}

// reportChroot reports a missing chroot. The watch is set all the same: it waits for the nodes.
func (w *PersistentWatcher) reportChroot(_ context.Context, ev callbacks.Event) {
	if errors.Is(ev.Err, framework.ErrNoChroot) {
		w.do(func(ctx context.Context) { w.client.ReportUnhandled(ctx, w.recipe, ev.Err) })
	}
}

// retryLater reports err, unless it is an outage, and requests the watch again after a pause. The caller holds life.
func (w *PersistentWatcher) retryLater(err error) {
	if w.ctx.Err() != nil {
		return
	}
	if !isTransient(err) {
		w.do(func(ctx context.Context) { w.client.ReportUnhandled(ctx, w.recipe, err) })
	}
	w.retry.Reset(pauseAfter(w.failures))
	w.failures++
}
