package builders

import (
	"context"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/zkpath"
)

// Delete builds a delete; it is a value like [Create]. In Java: DeleteBuilder.
type Delete struct {
	env        *environment
	version    int32
	guaranteed bool
	children   bool
	quiet      bool
}

// WithVersion sets the expected version of the node. ForPath fails with zk.ErrBadVersion on another one. -1, the
// default, is any.
func (d Delete) WithVersion(version int32) Delete { d.version = version; return d }

// Guaranteed continues the delete in the background if it fails without a connection or because its context ended,
// until it succeeds or the client is closed, or until the holding of a fenced client ends. ForPath returns the failure
// too. A node that was created since stays.
func (d Delete) Guaranteed() Delete { d.guaranteed = true; return d }

// DeletingChildrenIfNeeded deletes the tree below the node first. The version applies to the node itself alone.
func (d Delete) DeletingChildrenIfNeeded() Delete { d.children = true; return d }

// Quietly succeeds if the node does not exist.
func (d Delete) Quietly() Delete { d.quiet = true; return d }

// Idempotent is another word for Quietly, as in Java.
func (d Delete) Idempotent() Delete { return d.Quietly() }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (d Delete) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, d.start}
}

// ForPath deletes the node. ctx bounds the wait: when it ends first, the node may or may not be deleted. Errors:
// zk.ErrNoNode, zk.ErrNotEmpty, zk.ErrBadVersion, zk.ErrNoAuth, and, when the retry policy has given up, connection
// loss. A delete that is retried after a lost answer may find no node: see [Delete.Quietly]. It may also find a node
// that is newer than all that the client had seen of the server before: that one stays, and the error is
// [ErrUncertain], because the delete may have taken effect before another client created it.
func (d Delete) ForPath(ctx context.Context, path string) error {
	o := recycled[deleteOp](&deleteOps)
	o.b = d
	if err := o.init(d.env, callbacks.Delete, "delete", path, false); err != nil {
		return err
	}
	err := o.foreground(ctx, o)
	switch {
	case o.op.IsFree():
		o.Recycle()
	case ctx.Err() != nil && o.op.Executor() == nil && d.guaranteed && d.env.err == nil: // it never began
		o.continueDetached(ctx)
	}
	return err
}

// Submit submits the delete and does not wait: see [Create.Submit].
func (d Delete) Submit(ctx context.Context, path string) Future[struct{}] {
	o := &deleteOp{b: d}
	if err := o.init(d.env, callbacks.Delete, "delete", path, false); err != nil {
		return Future[struct{}]{err: err}
	}
	return submit(ctx, &o.call, o, o.result)
}

func (d Delete) start(ctx context.Context, path string, b background) error {
	o := recycled[deleteOp](&deleteOps)
	o.b = d
	if err := o.init(d.env, callbacks.Delete, "delete", path, false); err != nil {
		return err
	}
	o.op.Internal = d.guaranteed // a guaranteed delete is not refused
	return o.background(ctx, o, b)
}

// deleteGuaranteed deletes a node in the background, until that succeeds. The path has the namespace.
func deleteGuaranteed(ctx context.Context, env *environment, full string) {
	o := &deleteOp{
		call: call{env: env, verb: "delete", given: env.namespace.strip(full), full: full},
		b:    Delete{env: env, version: -1, quiet: true},
	}
	o.detached(exec.Unfenced(ctx), o) // the create that it undoes was fenced
}

// deleteOp is the protocol of a delete.
type deleteOp struct {
	call
	b     Delete
	stack []string // nodes to delete before the node, parents before their children

	looks    bool  // before it deletes: the node may be another one by now
	known    int64 // nodes of later transactions are not the one to delete; 0 if that is not known
	replaced bool  // the node is another one
	isTree   bool  // the node has had children, which are deleted first
}

var deleteOps sync.Pool

// Recycle returns its memory to the pool.
func (o *deleteOp) Recycle() { recycle(&deleteOps, o) }

// Begin deletes the node. After a try with a lost answer it looks at the node first.
func (o *deleteOp) Begin() {
	o.stack = o.stack[:0]
	if known, lost := o.op.LostAnswer(); lost && !o.looks {
		o.looks, o.known = true, known
	}
	if o.looks && o.known != 0 {
		o.catchUp(o.full, o.look)
		return
	}
	o.delete()
}

// HasSteps reports whether an attempt after a lost answer has several requests that belong together. Those for the
// nodes of a tree do not, and may be thousands.
func (o *deleteOp) HasSteps() bool { return !o.isTree }

// look deletes the node unless it is newer than the delete may be: an earlier try may have deleted the node, and
// another client created this one.
func (o *deleteOp) look() {
	o.send(jute.Request{Op: jute.OpExists, Path: o.full}, func() {
		switch err := o.op.Err(); {
		case err == zk.ErrNoNode:
			o.Replied()
		case err != nil:
			o.op.Finish(err)
		case o.op.Reply().Stat.Czxid > o.known:
			o.replaced = true
			o.op.SetUncertain(true)
			o.op.Finish(jute.ErrConnectionLoss)
		default:
			o.delete()
		}
	})
}

func (o *deleteOp) delete() {
	o.write(jute.Request{Op: jute.OpDelete, Path: o.full, Version: o.b.version}, o.b.quiet, nil)
}

// Replied handles the answer to the delete of the node.
func (o *deleteOp) Replied() {
	switch err := o.op.Err(); {
	case err == zk.ErrNoNode && o.b.quiet:
		o.op.Finish(nil)
	case err == zk.ErrNotEmpty && o.b.children:
		o.list(o.full)
	default:
		o.op.Finish(err)
	}
}

// list puts the children of path on the stack.
func (o *deleteOp) list(path string) {
	o.isTree = true
	o.send(jute.Request{Op: jute.OpGetChildren2, Path: path}, func() {
		if err := o.op.Err(); err != nil && err != zk.ErrNoNode {
			o.op.Finish(err)
			return
		}
		for _, child := range o.op.Reply().Children {
			o.stack = append(o.stack, zkpath.Join(path, child))
		}
		o.sweep()
	})
}

// sweep deletes the nodes on the stack, then the node. Others may create and delete nodes meanwhile: sweep skips a node
// that is gone, and lists one again that has children again.
func (o *deleteOp) sweep() {
	if len(o.stack) == 0 {
		o.delete()
		return
	}
	top := o.stack[len(o.stack)-1]
	o.write(jute.Request{Op: jute.OpDelete, Path: top, Version: -1}, true, func() {
		switch err := o.op.Err(); err {
		case nil, zk.ErrNoNode:
			o.stack = o.stack[:len(o.stack)-1]
			o.sweep()
		case zk.ErrNotEmpty:
			o.list(top)
		default:
			o.op.Finish(err)
		}
	})
}

// CleanUp continues a guaranteed delete.
func (o *deleteOp) CleanUp(err error) {
	if o.b.guaranteed && !o.op.Detached && !o.replaced && exec.IsPassing(err) {
		o.continueDetached(o.op.Context())
	}
}

// continueDetached continues the delete in the background, unless its fence lets it write no more.
func (o *deleteOp) continueDetached(ctx context.Context) {
	if f := o.env.fence; f != nil && f.ended() != nil && !exec.IsUnfenced(ctx) {
		return
	}
	next := &deleteOp{call: call{env: o.env, verb: "delete", given: o.given, full: o.full}, b: o.b}
	next.b.quiet = true // the first may have taken effect
	next.looks, next.known = true, o.known
	if known, lost := o.op.LostAnswer(); !o.looks && lost {
		next.known = known
	} else if conn := o.env.Executor.Conn(); !o.looks && conn != nil {
		next.known = conn.Known()
	}
	next.detached(ctx, next)
}

func (o *deleteOp) result() (struct{}, error) { return struct{}{}, nil }

// Deliver hands the result to the callback. A guaranteed delete that goes on has no receiver: its end without an effect
// is reported.
func (o *deleteOp) Deliver() {
	if o.op.Detached && o.replaced {
		o.env.GivenUp(o.op.Context(), "guaranteed delete ended: the node is newer", o.wrap(o.op.Result()), false)
	}
	o.deliver(callbacks.Event{})
}

// findAndDelete deletes, in the background, the children of parent whose names begin with prefix: an operation with an
// unknown outcome may have left them.
func findAndDelete(ctx context.Context, env *environment, parent, prefix string) {
	o := &findAndDeleteOp{
		call:   call{env: env, verb: "delete", given: env.namespace.strip(parent), full: parent},
		prefix: prefix,
	}
	o.detached(ctx, o)
}

type findAndDeleteOp struct {
	call
	prefix string
}

// Describe returns what telemetry records of the operation.
func (o *findAndDeleteOp) Describe() telemetry.Operation {
	what := o.call.Describe()
	what.Cleanup = true
	return what
}

// Begin lets the server catch up, and lists: see [createOp.find].
func (o *findAndDeleteOp) Begin() { o.catchUp(o.full, o.list) }

func (o *findAndDeleteOp) list() {
	o.send(jute.Request{Op: jute.OpGetChildren2, Path: o.full}, func() {
		for _, child := range o.op.Reply().Children {
			if strings.HasPrefix(child, o.prefix) {
				deleteGuaranteed(o.op.Context(), o.env, zkpath.Join(o.full, child))
			}
		}
		err := o.op.Err()
		if err == zk.ErrNoNode { // nor anything below it
			err = nil
		}
		o.op.Finish(err)
	})
}

// Deliver does nothing: a clean-up has no callback.
func (o *findAndDeleteOp) Deliver() {}
