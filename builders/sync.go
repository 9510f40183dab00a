package builders

import (
	"context"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// Sync builds a sync; it is a value like [Create]. In Java: SyncBuilder, which has only the background.
type Sync struct{ env *environment }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (s Sync) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, s.start}
}

// ForPath returns when the connected server has caught up with the leader: later reads on this connection see all
// earlier writes of others. The leader trusts itself. It may be a moment behind its followers, and it may be a former
// leader that has not noticed yet. For certainty write: a majority agrees to a [Transaction] that only checks a node,
// and later reads are up to date.
func (s Sync) ForPath(ctx context.Context, path string) error {
	o := &syncOp{}
	if err := o.init(s.env, callbacks.Sync, "sync", path, false); err != nil {
		return err
	}
	return o.foreground(ctx, o)
}

func (s Sync) start(ctx context.Context, path string, b background) error {
	o := &syncOp{}
	if err := o.init(s.env, callbacks.Sync, "sync", path, false); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

// syncOp is the protocol of a sync.
type syncOp struct{ call }

// Begin sends the request.
func (o *syncOp) Begin() {
	o.send(jute.Request{Op: jute.OpSync, Path: o.full}, func() { o.op.Finish(o.op.Err()) })
}

// Deliver hands the result to the callback.
func (o *syncOp) Deliver() { o.deliver(callbacks.Event{}) }
