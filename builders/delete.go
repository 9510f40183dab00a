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
// until it succeeds or the client is closed. ForPath returns the failure too.
func (d Delete) Guaranteed() Delete { d.guaranteed = true; return d }

// DeletingChildrenIfNeeded deletes the tree below the node first. The version applies to the node itself alone.
func (d Delete) DeletingChildrenIfNeeded() Delete { d.children = true; return d }

// Quietly succeeds if the node does not exist.
func (d Delete) Quietly() Delete { d.quiet = true; return d }

// Idempotent is another word for Quietly, as in Java.
func (d Delete) Idempotent() Delete { return d.Quietly() }

// InBackground runs the delete in the background. cb gets its result, or the client's listeners if cb is nil.
func (d Delete) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, d.start}
}

// ForPath deletes the node. ctx bounds the wait: when it ends first, the node may or may not be deleted. Errors:
// zk.ErrNoNode, zk.ErrNotEmpty, zk.ErrBadVersion, zk.ErrNoAuth, and, when the retry policy has given up, connection
// loss. A delete that is retried after a lost answer may find no node: see [Delete.Quietly].
func (d Delete) ForPath(ctx context.Context, path string) error {
	o := &deleteOp{b: d}
	if err := o.init(d.env, callbacks.Delete, "delete", path, false); err != nil {
		return err
	}
	err := o.foreground(ctx, o)
	if ctx.Err() != nil && o.Executor() == nil && d.guaranteed && d.env.err == nil { // it never began
		o.goOn(ctx)
	}
	return err
}

// Submit submits the delete and does not wait: see [Create.Submit].
func (d Delete) Submit(ctx context.Context, path string) Future[struct{}] {
	o := &deleteOp{b: d}
	if err := o.init(d.env, callbacks.Delete, "delete", path, false); err != nil {
		return Future[struct{}]{err: err}
	}
	return submit(ctx, &o.call, o, func() (struct{}, error) { return struct{}{}, nil })
}

func (d Delete) start(ctx context.Context, path string, b background) error {
	o := recycled[deleteOp](&deleteOps)
	o.b = d
	if err := o.init(d.env, callbacks.Delete, "delete", path, false); err != nil {
		return err
	}
	o.Internal = d.guaranteed // a guaranteed delete is not refused
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
}

var deleteOps sync.Pool

// Recycle returns its memory to the pool.
func (o *deleteOp) Recycle() {
	*o = deleteOp{}
	deleteOps.Put(o)
}

// Begin deletes the node.
func (o *deleteOp) Begin() {
	o.stack = o.stack[:0]
	o.delete()
}

func (o *deleteOp) delete() {
	o.write(jute.Request{Op: jute.OpDelete, Path: o.full, Version: o.b.version}, o.b.quiet, nil)
}

// Replied handles the answer to the delete of the node.
func (o *deleteOp) Replied() {
	switch err := o.Request.Err; {
	case err == zk.ErrNoNode && o.b.quiet:
		o.Finish(nil)
	case err == zk.ErrNotEmpty && o.b.children:
		o.list(o.full)
	default:
		o.Finish(err)
	}
}

// list puts the children of path on the stack.
func (o *deleteOp) list(path string) {
	o.send(jute.Request{Op: jute.OpGetChildren2, Path: path}, func() {
		if err := o.Request.Err; err != nil && err != zk.ErrNoNode {
			o.Finish(err)
			return
		}
		for _, child := range o.Reply.Children {
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
		switch err := o.Request.Err; err {
		case nil, zk.ErrNoNode:
			o.stack = o.stack[:len(o.stack)-1]
			o.sweep()
		case zk.ErrNotEmpty:
			o.list(top)
		default:
			o.Finish(err)
		}
	})
}

// CleanUp continues a guaranteed delete.
func (o *deleteOp) CleanUp(err error) {
	if o.b.guaranteed && !o.Detached && exec.IsPassing(err) {
		o.goOn(o.Context())
	}
}

// goOn continues the delete in the background.
func (o *deleteOp) goOn(ctx context.Context) {
	next := &deleteOp{call: call{env: o.env, verb: "delete", given: o.given, full: o.full}, b: o.b}
	next.b.quiet = true // the first may have taken effect
	next.detached(ctx, next)
}

// Run delivers the result.
func (o *deleteOp) Run() { o.deliver(callbacks.Event{}) }

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

// Describe returns Java's name.
func (o *findAndDeleteOp) Describe() telemetry.Operation {
	what := o.call.Describe()
	what.Java = "FindAndDeleteProtectedNodeInBackground"
	return what
}

// Begin lets the server catch up, and lists: see [createOp.find].
func (o *findAndDeleteOp) Begin() { o.catchUp(o.full, o.list) }

func (o *findAndDeleteOp) list() {
	o.send(jute.Request{Op: jute.OpGetChildren2, Path: o.full}, func() {
		for _, child := range o.Reply.Children {
			if strings.HasPrefix(child, o.prefix) {
				deleteGuaranteed(o.Context(), o.env, zkpath.Join(o.full, child))
			}
		}
		err := o.Request.Err
		if err == zk.ErrNoNode { // nor anything below it
			err = nil
		}
		o.Finish(err)
	})
}

// Run does nothing: a clean-up has no callback.
func (o *findAndDeleteOp) Run() {}
