package waitqueue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/telemetry"
)

// ShortHold is the time before the node of a new hold is watched. A shorter hold costs no request for the watch.
const ShortHold = 10 * time.Millisecond

// pendingPause is the pause before the next read when the client has too many pending operations.
const pendingPause = 100 * time.Millisecond

// NodeWatch watches the node of a contender that has its turn, and reports its deletion. It survives lost connections.
// While the server refuses to read the node, the node is not watched, and NodeWatch tries again after a pause.
type NodeWatch struct {
	client    *framework.Client
	node      *Contender
	onDeleted func()
	ctx       context.Context // for the reads

	mu       sync.Mutex
	watcher  *callbacks.Watcher // nil before the first read
	onData   func(data []byte)  // may be nil
	timer    *time.Timer        // for the next read; may be nil
	refusals int                // number of refused reads in a row
	stopped  bool
}

// NewNodeWatch returns the watch of a contender's node. Start sets it. The reads use ctx. onDeleted is called at most
// once, when the node is gone before Stop. It must not block, and must not call code of the program.
func NewNodeWatch(ctx context.Context, client *framework.Client, node *Contender, onDeleted func()) *NodeWatch {
	return &NodeWatch{client: client, node: node, onDeleted: onDeleted, ctx: ctx}
}

// Start sets the watch after a pause. It does not wait.
func (w *NodeWatch) Start(pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readAfter(pause)
}

// ReportData sets the watch at once. It calls onData with the data of the node, now and after each change, as onDeleted
// is called.
func (w *NodeWatch) ReportData(onData func(data []byte)) {
	w.mu.Lock()
	w.onData = onData
	w.mu.Unlock()
	w.read()
}

// Stop ends the reports. The deletion of the node ends its watch. Call Remove if the node stays.
func (w *NodeWatch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Remove removes the watch of a node that stays, in the background, and retries until that succeeds. Call Stop first.
func (w *NodeWatch) Remove() {
	w.mu.Lock()
	watcher := w.watcher
	w.mu.Unlock()
	if watcher != nil {
		Unwatch(w.ctx, w.client, watcher, w.node.Path)
	}
}

// readAfter reads after a pause. mu is held.
func (w *NodeWatch) readAfter(pause time.Duration) {
	w.timer = time.AfterFunc(pause, w.read)
}

// read reads the node in the background and sets the watch.
func (w *NodeWatch) read() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.watcher == nil {
		w.client = ForLibrary(w.client)
		w.watcher = callbacks.NewWatcher(w.onEvent)
		w.ctx = telemetry.Untraced(w.ctx)
	}
	// Out of the order of the client: its program does not wait for a retry of this read.
	err := w.client.GetData().Undecompressed().UsingWatcher(w.watcher).InBackground(w.onRead).
		ForPath(builders.OutOfFlight(w.ctx), w.node.Path)
	if errors.Is(err, framework.ErrTooManyPending) {
		w.readAfter(pendingPause)
	}
}

// onRead handles the result of a read.
func (w *NodeWatch) onRead(_ context.Context, ev callbacks.Event) {
	w.mu.Lock()
	stopped, onData := w.stopped, w.onData
	// A node with another czxid was created after ours was deleted.
	isGone := errors.Is(ev.Err, zk.ErrNoNode) || ev.Err == nil && ev.Stat.Czxid != w.node.Stat.Czxid
	isRefused := ev.Err != nil && !isGone && !IsOutage(ev.Err) && !errors.Is(ev.Err, framework.ErrClosed)
	if !isRefused {
		w.refusals = 0
	} else if w.refusals++; !stopped {
		w.readAfter(ReadPause(w.refusals))
	}
	w.mu.Unlock()
	switch {
	case stopped:
		w.Remove() // the node may stay, and the release has called Remove before this watch was set
	case isGone:
		w.report()
	case ev.Err == nil && onData != nil:
		onData(ev.Data)
	case IsOutage(ev.Err): // all retries of the client have failed, and the node is not watched
		w.read()
	}
}

// onEvent handles an event of the watch.
func (w *NodeWatch) onEvent(_ context.Context, ev zk.Event) {
	switch {
	case ev.Type == zk.EventNodeDeleted:
		w.report()
	case ev.Type == zk.EventNodeDataChanged, ev.Type == zk.EventNotWatching,
		ev.Type == zk.EventSession && ev.State == zk.StateExpired && w.node.Stat.EphemeralOwner == 0: // a persistent node
		w.read()
	}
}

// report calls onDeleted, unless the watch is stopped.
func (w *NodeWatch) report() {
	w.mu.Lock()
	stopped := w.stopped
	w.stopped = true
	w.mu.Unlock()
	if !stopped {
		w.onDeleted()
	}
}
