package builders

import (
	"context"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// GetAllChildrenNumber builds a count of all nodes below a node; it is a value like [Create]. The server must be 3.6 or
// newer. In Java: ZooKeeper.getAllChildrenNumber.
type GetAllChildrenNumber struct{ env *environment }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result in
// Event.Count, or the client's listeners if cb is nil.
func (g GetAllChildrenNumber) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, g.start}
}

// ForPath returns the number of nodes below the node, on all levels. The server walks through all of its nodes for
// that. Errors: zk.ErrNoNode, zk.ErrNoAuth, framework.ErrUnimplemented of an older server, and, when the retry policy
// has given up, connection loss.
func (g GetAllChildrenNumber) ForPath(ctx context.Context, path string) (int, error) {
	o := &allChildrenOp{}
	if err := o.init(g.env, callbacks.GetAllChildrenNumber, "getAllChildrenNumber", path, false); err != nil {
		return 0, err
	}
	if err := o.foreground(ctx, o); err != nil {
		return 0, err
	}
	return int(o.op.Reply().Count), nil
}

func (g GetAllChildrenNumber) start(ctx context.Context, path string, b background) error {
	o := &allChildrenOp{}
	if err := o.init(g.env, callbacks.GetAllChildrenNumber, "getAllChildrenNumber", path, false); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

// allChildrenOp is the protocol of a getAllChildrenNumber.
type allChildrenOp struct{ call }

// Begin sends the request.
func (o *allChildrenOp) Begin() {
	o.send(jute.Request{Op: jute.OpGetAllChildrenNumber, Path: o.full}, func() { o.op.Finish(o.op.Err()) })
}

// Deliver hands the result to the callback.
func (o *allChildrenOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		ev.Count = int(o.op.Reply().Count)
	}
	o.deliver(ev)
}
