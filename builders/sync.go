package builders

import (
	"context"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// Sync builds a sync; it is a value like [Create]. In Java: SyncBuilder, which knows only the background.
type Sync struct{ env *environment }

// InBackground makes it run in the background; its result goes to cb, or to the client's listeners if cb is nil.
func (s Sync) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, s.start}
}

// ForPath returns when the server that the client is connected to has caught up with the leader: what others have
// written before is then seen by reads on this connection. The leader itself takes its own word for it, and may be a
// moment behind its followers, or lead no longer and not know yet. For certainty write: a [Transaction] that
// only checks a node is agreed to by a majority, and what is read behind it is up to date.
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
	o.ask(jute.Request{Op: jute.OpSync, Path: o.full}, func() { o.Finish(o.Request.Err) })
}

// Run delivers the result.
func (o *syncOp) Run() { o.deliver(callbacks.Event{}) }
