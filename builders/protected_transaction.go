package builders

import (
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/zkpath"
)

// protectedCreate is a create with protection among the operations of a transaction.
type protectedCreate struct {
	index  int // of the operation
	parent string
	prefix string // of the node's name
	path   string // of the node that find has found
}

// protect creates an id for operation i.
func (o *transactionOp) protect(i int) {
	id, path := zkpath.NewProtectionID(), o.requests[i].Path
	o.requests[i].Path = zkpath.ProtectPath(id, path)
	o.protected = append(o.protected, protectedCreate{
		index: i, parent: zkpath.Parent(o.requests[i].Path), prefix: zkpath.ProtectedPrefix(id),
	})
}

// find looks for the protected nodes, which an attempt with a lost answer may have created. If the first one exists the
// transaction has taken effect. The connected server may have to catch up first.
func (o *transactionOp) find() {
	o.executing = false
	o.catchUp(o.protected[0].parent, func() { o.findFrom(0) })
}

func (o *transactionOp) findFrom(i int) {
	if i == len(o.protected) {
		o.adopt()
		return
	}
	p := &o.protected[i]
	o.send(jute.Request{Op: jute.OpGetChildren2, Path: p.parent}, func() {
		if err := o.op.Err(); err != nil && err != zk.ErrNoNode {
			o.op.Finish(err)
			return
		}
		at := slices.IndexFunc(o.op.Reply().Children, func(child string) bool { return strings.HasPrefix(child, p.prefix) })
		switch {
		case at >= 0:
			p.path = zkpath.Join(p.parent, o.op.Reply().Children[at])
		case i == 0:
			o.op.SetUncertain(false)
			o.again()
			return
		}
		o.findFrom(i + 1) // a missing one was deleted by others
	})
}

// adopt accepts the found nodes as ours, unless they are of an earlier session, which ends with its nodes.
func (o *transactionOp) adopt() {
	first := o.protected[0]
	o.send(jute.Request{Op: jute.OpExists, Path: first.path}, func() {
		stat := o.op.Reply().Stat
		ephemeral := o.ops[first.index].mode.IsEphemeral()
		switch err := o.op.Err(); {
		case err != nil:
			o.op.Finish(err)
		case ephemeral && stat.EphemeralOwner != o.op.Executor().Conn().SessionID():
			o.op.Finish(zk.ErrSessionExpired)
		default:
			o.done, o.zxid = true, stat.Czxid
			o.op.Finish(nil)
		}
	})
}

// found returns the results of a transaction whose answer was lost.
func (o *transactionOp) found() []callbacks.OperationResult {
	out := make([]callbacks.OperationResult, len(o.ops))
	for i, op := range o.ops {
		out[i] = callbacks.OperationResult{Type: op.typ, ForPath: op.path}
		if op.typ == callbacks.OperationCreate && !op.mode.IsSequential() {
			out[i].ResultPath = op.env.namespace.strip(o.requests[i].Path)
		}
	}
	for _, p := range o.protected {
		out[p.index].ResultPath = ""
		if p.path != "" {
			out[p.index].ResultPath = o.ops[p.index].env.namespace.strip(p.path)
		}
	}
	return out
}

// CleanUp removes the protected nodes of a failed transaction.
func (o *transactionOp) CleanUp(err error) {
	if !o.op.Sent() {
		return
	}
	for _, p := range o.protected {
		switch {
		case err == nil && o.done:
			if p.path != "" {
				deleteGuaranteed(o.op.Context(), o.env, p.path)
			}
		case err == nil: // the caller had given up
			deleteGuaranteed(o.op.Context(), o.env, o.op.Reply().Results[p.index].Path)
		case exec.IsIndefinite(err) || o.op.Attempts() > 1:
			findAndDelete(o.op.Context(), o.env, p.parent, p.prefix)
		}
	}
}
