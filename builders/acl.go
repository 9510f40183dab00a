package builders

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
)

// GetACL builds a getACL; it is a value like [Create]. In Java: GetACLBuilder.
type GetACL struct {
	env  *environment
	stat *zk.Stat
}

// StoringStatIn stores the Stat of the node in stat before ForPath returns, or in the background before
// the callback is called.
func (g GetACL) StoringStatIn(stat *zk.Stat) GetACL { g.stat = stat; return g }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (g GetACL) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, g.start}
}

// ForPath returns the ACL of the node. Errors: zk.ErrNoNode, zk.ErrNoAuth, and, when the retry policy has given up,
// connection loss.
func (g GetACL) ForPath(ctx context.Context, path string) ([]zk.ACL, error) {
	o := &aclOp{}
	if err := g.prepare(o, path); err != nil {
		return nil, err
	}
	if err := o.foreground(ctx, o); err != nil {
		return nil, err
	}
	o.store()
	return o.op.Reply().ACL, nil
}

func (g GetACL) start(ctx context.Context, path string, b background) error {
	o := &aclOp{}
	if err := g.prepare(o, path); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (g GetACL) prepare(o *aclOp, path string) error {
	if err := o.init(g.env, callbacks.GetACL, "getACL", path, false); err != nil {
		return err
	}
	o.request, o.into = jute.Request{Op: jute.OpGetACL, Path: o.full}, g.stat
	return nil
}

// SetACL builds a setACL; it is a value like [Create]. In Java: SetACLBuilder.
type SetACL struct {
	env     *environment
	acl     []zk.ACL
	version int32
}

// WithACL sets the new ACL of the node.
func (s SetACL) WithACL(acl ...zk.ACL) SetACL { s.acl = clone(acl); return s }

// WithVersion sets the expected version of the ACL (Stat.Aversion). ForPath fails with zk.ErrBadVersion on another one.
// -1, the default, is any.
func (s SetACL) WithVersion(version int32) SetACL { s.version = version; return s }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (s SetACL) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, s.start}
}

// ForPath sets the ACL of the node and returns its new Stat. Errors: zk.ErrNoNode, zk.ErrBadVersion,
// zk.ErrInvalidACL, zk.ErrNoAuth, framework.ErrUnimplemented if the client is fenced, and, when the retry policy has
// given up, connection loss. With a version, a retry after a lost answer spares a newer node, as that of a [SetData]
// does.
func (s SetACL) ForPath(ctx context.Context, path string) (*zk.Stat, error) {
	o := &aclOp{}
	if err := s.prepare(o, path); err != nil {
		return nil, err
	}
	if err := o.foreground(ctx, o); err != nil {
		return nil, err
	}
	return &o.op.Reply().Stat, nil
}

func (s SetACL) start(ctx context.Context, path string, b background) error {
	o := &aclOp{}
	if err := s.prepare(o, path); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

func (s SetACL) prepare(o *aclOp, path string) error {
	if err := o.init(s.env, callbacks.SetACL, "setACL", path, false); err != nil {
		return err
	}
	if len(s.acl) == 0 {
		return o.badArguments("no ACL given")
	}
	if err := o.unfenceable(); err != nil {
		return err
	}
	o.request = jute.Request{Op: jute.OpSetACL, Path: o.full, ACL: s.acl, Version: s.version}
	return nil
}

// aclOp is the protocol of GetACL and SetACL: one request.
type aclOp struct {
	call
	request jute.Request
	into    *zk.Stat
}

// Begin sends the request. After a try with a lost answer it looks first whether a node with a version is the same one.
func (o *aclOp) Begin() {
	if o.HasSteps() {
		o.unlessNewer(o.exchange, o.full)
		return
	}
	o.exchange()
}

// HasSteps reports whether an attempt after a lost answer may have several requests.
func (o *aclOp) HasSteps() bool { return o.request.Op == jute.OpSetACL && o.request.Version != -1 }

func (o *aclOp) exchange() { o.send(o.request, func() { o.op.Finish(o.op.Err()) }) }

func (o *aclOp) store() {
	if o.into != nil {
		*o.into = o.op.Reply().Stat
	}
}

// Deliver hands the result to the callback.
func (o *aclOp) Deliver() {
	var ev callbacks.Event
	if o.op.Result() == nil {
		o.store()
		ev.ACL, ev.Stat = o.op.Reply().ACL, &o.op.Reply().Stat
	}
	o.deliver(ev)
}
