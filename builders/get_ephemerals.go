package builders

import (
	"context"
	"strings"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// GetEphemerals builds a list of the ephemeral nodes of the session; it is a value like [Create]. The server must be
// 3.6 or newer. In Java: ZooKeeper.getEphemerals.
type GetEphemerals struct{ env *environment }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result in
// Event.Children, or the client's listeners if cb is nil.
func (g GetEphemerals) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, g.start}
}

// ForPath returns the paths of the ephemeral nodes of the client's session that begin with prefix, "/" for all of the
// namespace, in no order. They are those of the session that has the connection now, as its server knows them: after
// the loss of a session it begins with none. Errors: framework.ErrUnimplemented of an older server, and, when the retry
// policy has given up, connection loss.
func (g GetEphemerals) ForPath(ctx context.Context, prefix string) ([]string, error) {
	o := &ephemeralsOp{}
	if err := g.prepare(o, prefix); err != nil {
		return nil, err
	}
	if err := o.foreground(ctx, o); err != nil {
		return nil, err
	}
	return o.paths(), nil
}

func (g GetEphemerals) start(ctx context.Context, prefix string, b background) error {
	o := &ephemeralsOp{}
	if err := g.prepare(o, prefix); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (g GetEphemerals) prepare(o *ephemeralsOp, prefix string) error {
	if err := o.init(g.env, callbacks.GetEphemerals, "getEphemerals", prefix, false); err != nil {
		return err
	}
	if prefix == "/" && o.full != "/" { // not those of a namespace whose name is longer
		o.full += "/"
	}
	return nil
}

// ephemeralsOp is the protocol of a getEphemerals.
type ephemeralsOp struct{ call }

// Begin sends the request.
func (o *ephemeralsOp) Begin() {
	o.send(jute.Request{Op: jute.OpGetEphemerals, Path: o.full}, func() { o.op.Finish(o.op.Err()) })
}

func (o *ephemeralsOp) paths() []string {
	paths := o.op.Reply().Children
	for i, path := range paths {
		paths[i] = strings.TrimPrefix(path, o.env.namespace.prefix)
	}
	return paths
}

// Deliver hands the result to the callback.
func (o *ephemeralsOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		ev.Children = o.paths()
	}
	o.deliver(ev)
}
