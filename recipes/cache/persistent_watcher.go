package cache

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// PersistentWatcher keeps a persistent watch over connections and sessions. What happened without a connection is not
// told: the reset listeners say when to look at the nodes again. The server must be 3.6 or newer. All methods are safe
// for concurrent use. In Java: PersistentWatcher.
type PersistentWatcher struct {
	path      string
	mode      builders.AddWatchMode
	watcher   *callbacks.Watcher
	listeners listeners.Set[zk.Event]
	resets    listeners.Set[struct{}]
	*notifier

	mu          sync.Mutex
	state       lifeState
	removeState func()
	retry       *time.Timer
	failures    int
}

// NewPersistentWatcher returns a watcher of a node, or of a node and all below it if recursive is set. It does no I/O;
// a path that cannot be is the error of Start.
func NewPersistentWatcher(client Client, path string, recursive bool) *PersistentWatcher {
	w := &PersistentWatcher{
		path: path, mode: builders.PersistentWatch, notifier: newNotifier(client, "PersistentWatcher "+path),
	}
	if recursive {
		w.mode = builders.PersistentRecursiveWatch
	}
	w.watcher = callbacks.NewWatcher(w.watched)
	return w
}

// Listenable returns the listeners of the events of nodes. They are called one at a time, on a goroutine of the
// watcher. In Java: getListenable.
func (w *PersistentWatcher) Listenable() callbacks.Listenable[zk.Event] { return &w.listeners }

// ResetListenable returns the listeners that are called when the watch is set, for the first time or on a new
// connection: what happened before is not told. They run as the others do, in turn with them. In Java:
// getResetListenable.
func (w *PersistentWatcher) ResetListenable() callbacks.Listenable[struct{}] { return &w.resets }

// Start begins to watch, and does not wait. A failure is told to the client's UnhandledErrorListeners, and it is tried
// again after a pause. It fails with [ErrStarted] the second time and with [ErrClosed] after Close.
func (w *PersistentWatcher) Start() error {
	if err := zkpath.Validate(w.path, false); err != nil {
		return errtext.Wrap(err, "cache", "start")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case started:
		return ErrStarted
	case closed:
		return ErrClosed
	}
	w.state = started
	w.removeState = w.client.ConnectionStateListeners().AddListener(func(_ context.Context, s framework.ConnectionState) {
		if s.IsConnected() {
			w.set()
		}
	})
	if w.client.IsConnected() {
		w.submit()
	}
	return nil
}

// Close ends the watching and removes the watch, in the background until that is done. It waits for listeners as
// [CuratorCache.Close] does.
func (w *PersistentWatcher) Close() error {
	w.stop()
	w.notifier.close()
	return nil
}

// stop removes the watch.
func (w *PersistentWatcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.state
	w.state = closed
	w.cancel()
	if was != started {
		return
	}
	w.removeState()
	if w.retry != nil {
		w.retry.Stop()
	}
	_ = w.client.Watches().Remove(w.watcher).Guaranteed().Quietly().InBackground(waitqueue.Ignore).
		WithUnhandledErrorListener(ignoreError).ForPath(context.WithoutCancel(w.ctx), w.path)
}

func (w *PersistentWatcher) watched(_ context.Context, ev zk.Event) {
	if ev.Type != zk.EventSession {
		w.do(func(ctx context.Context) { w.listeners.Notify(ctx, ev, w.call) })
	}
}

// set sets the watch, unless the watcher is closed.
func (w *PersistentWatcher) set() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == started {
		w.submit()
	}
}

// submit submits the watch. It is tried once: a lost connection is followed by another. mu is held.
func (w *PersistentWatcher) submit() {
	err := w.client.Watches().Add().WithMode(w.mode).UsingWatcher(w.watcher).
		InBackground(func(_ context.Context, ev callbacks.Event) { w.answered(ev.Err) }).
		WithUnhandledErrorListener(ignoreError).ForPath(builders.Pipelined(w.ctx), w.path)
	if err != nil {
		w.failed(err)
	}
}

func (w *PersistentWatcher) answered(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed(err)
		return
	}
	w.failures = 0
	w.do(func(ctx context.Context) { w.resets.Notify(ctx, struct{}{}, w.call) })
}

// failed tries again after a pause. mu is held.
func (w *PersistentWatcher) failed(err error) {
	if w.state != started {
		return
	}
	if !isPassing(err) {
		w.do(func(ctx context.Context) { w.client.ReportUnhandled(ctx, w.recipe, err) })
	}
	pause := pauseAfter(w.failures)
	w.failures++
	if w.retry != nil {
		w.retry.Stop()
	}
	w.retry = time.AfterFunc(pause, func() {
		if w.client.IsConnected() {
			w.set()
		}
	})
}
