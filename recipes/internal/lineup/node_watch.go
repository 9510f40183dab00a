package lineup

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/telemetry"
)

// ShortHold is how long a node is held before it is watched: a hold that ends earlier costs no request.
const ShortHold = 10 * time.Millisecond

// refusedPause is the time between two reads when the client has too many pending operations.
const refusedPause = 100 * time.Millisecond

// NodeWatch watches the node of a granted contender, and reports that somebody deletes it. The watch survives lost
// connections. A node that may not be read is not watched.
type NodeWatch struct {
	client  Client
	node    *Contender
	deleted func()
	ctx     context.Context // of the reads

	mu      sync.Mutex
	watcher *callbacks.Watcher // nil before the first read
	changed func(data []byte)  // may be nil
	timer   *time.Timer        // of the next read; may be nil
	stopped bool
}

// NewNodeWatch returns the watch of a contender's node; ctx has the values for its reads. deleted is called once, on
// the dispatcher of the client, when the node is gone before Stop. Call Start to set the watch.
func NewNodeWatch(ctx context.Context, client Client, node *Contender, deleted func()) *NodeWatch {
	return &NodeWatch{client: client, node: node, deleted: deleted, ctx: ctx}
}

// Start sets the watch after a pause, and does not wait for that.
func (w *NodeWatch) Start(pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readAfter(pause)
}

// ReportData sets the watch at once, and has changed called with the data of the node, now and whenever it is set, on
// the dispatcher of the client.
func (w *NodeWatch) ReportData(changed func(data []byte)) {
	w.mu.Lock()
	w.changed = changed
	w.mu.Unlock()
	w.read()
}

// Stop ends the reports. The deletion of the node ends its watch; if the node is to stay, call Remove.
func (w *NodeWatch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Remove takes the watch back, in the background until that is done. It is for a stopped watch whose node stays.
func (w *NodeWatch) Remove() {
	w.mu.Lock()
	watcher := w.watcher
	w.mu.Unlock()
	if watcher != nil {
		_ = w.client.Watches().Remove(watcher).Guaranteed().Quietly().InBackground(Ignore).ForPath(w.ctx, w.node.Path)
	}
}

// readAfter reads after a pause. mu is held.
func (w *NodeWatch) readAfter(pause time.Duration) {
	w.timer = time.AfterFunc(pause, w.read)
}

// read reads the node in the background, and sets the watch with that.
func (w *NodeWatch) read() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.watcher == nil {
		w.watcher = callbacks.NewWatcher(w.notified)
		w.ctx = telemetry.Untraced(w.ctx)
	}
	err := w.client.GetData().Undecompressed().UsingWatcher(w.watcher).InBackground(w.answered).ForPath(w.ctx, w.node.Path)
	if errors.Is(err, framework.ErrTooManyPending) {
		w.readAfter(refusedPause)
	}
}

// answered takes the answer to a read.
func (w *NodeWatch) answered(_ context.Context, ev callbacks.Event) {
	w.mu.Lock()
	stopped, changed := w.stopped, w.changed
	w.mu.Unlock()
	switch {
	case stopped:
		w.Remove() // the node may stay, and the Remove of its release came before this watch
	case errors.Is(ev.Err, zk.ErrNoNode), ev.Err == nil && ev.Stat.Czxid != w.node.Stat.Czxid: // another node
		w.report()
	case ev.Err == nil && changed != nil:
		changed(ev.Data)
	case IsOutage(ev.Err): // given up: the node may go while nobody watches
		w.read()
	}
}

// notified takes an event of the watch.
func (w *NodeWatch) notified(_ context.Context, ev zk.Event) {
	switch {
	case ev.Type == zk.EventNodeDeleted:
		w.report()
	case ev.Type == zk.EventNodeDataChanged,
		ev.Type == zk.EventSession && ev.State == zk.StateExpired && w.node.Stat.EphemeralOwner == 0: // the node outlives it
		w.read()
	}
}

// report calls deleted, unless the watch is stopped.
func (w *NodeWatch) report() {
	w.mu.Lock()
	stopped := w.stopped
	w.stopped = true
	w.mu.Unlock()
	if !stopped {
		w.deleted()
	}
}
