package builders

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// GetChildren builds a getChildren; it is a value like [Create]. In Java: GetChildrenBuilder.
type GetChildren struct {
	env     *environment
	stat    *zk.Stat
	watcher *callbacks.Watcher
}

// StoringStatIn stores the Stat of the node in stat before ForPath returns, or in the background before
// the callback is called.
func (g GetChildren) StoringStatIn(stat *zk.Stat) GetChildren { g.stat = stat; return g }

// UsingWatcher sets a watch of the node's children and deletion.
func (g GetChildren) UsingWatcher(w *callbacks.Watcher) GetChildren { g.watcher = w; return g }

// Watched sets a watch whose event goes to the listeners of the client.
func (g GetChildren) Watched() GetChildren { return g.UsingWatcher(g.env.DefaultWatcher) }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (g GetChildren) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, g.start}
}

// ForPath returns the names of the node's children, in no order. Errors: zk.ErrNoNode, zk.ErrNoAuth, and, when the
// retry policy has given up, connection loss.
func (g GetChildren) ForPath(ctx context.Context, path string) ([]string, error) {
	o := recycled[getChildrenOp](&getChildrenOps)
	o.b = g
	if err := o.init(g.env, callbacks.Children, "getChildren", path, false); err != nil {
		return nil, err
	}
	return perform(ctx, &o.call, o)
}

// Submit submits the getChildren and does not wait: see [Create.Submit].
func (g GetChildren) Submit(ctx context.Context, path string) Future[[]string] {
	o := &getChildrenOp{b: g}
	if err := o.init(g.env, callbacks.Children, "getChildren", path, false); err != nil {
		return Future[[]string]{err: err}
	}
	return submit(ctx, &o.call, o, o.result)
}

func (g GetChildren) start(ctx context.Context, path string, b background) error {
	o := recycled[getChildrenOp](&getChildrenOps)
	o.b = g
	if err := o.init(g.env, callbacks.Children, "getChildren", path, false); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

// getChildrenOp is the protocol of a getChildren.
type getChildrenOp struct {
	call
	b GetChildren
}

var getChildrenOps sync.Pool

// Recycle returns its memory to the pool.
func (o *getChildrenOp) Recycle() { recycle(&getChildrenOps, o) }

// Begin sends the request.
func (o *getChildrenOp) Begin() {
	o.sendWatching(jute.Request{Op: jute.OpGetChildren2, Path: o.full}, o.b.watcher, nil)
}

// Replied handles the answer.
func (o *getChildrenOp) Replied() {
	if o.op.Err() == nil {
		o.watched(o.b.watcher, false)
	}
	o.op.Finish(o.op.Err())
}

func (o *getChildrenOp) result() ([]string, error) {
	o.store()
	return o.op.Reply().Children, nil
}

func (o *getChildrenOp) store() {
	if o.b.stat != nil {
		*o.b.stat = o.op.Reply().Stat
	}
}

// Deliver hands the result to the callback.
func (o *getChildrenOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		o.store()
		ev.Children, ev.Stat = o.op.Reply().Children, o.statCopy()
	}
	o.deliver(ev)
}
