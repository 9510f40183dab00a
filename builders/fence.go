package builders

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/zkpath"
)

// ErrUncertain is wrapped by the error of a fenced write whose answer was lost: it may have taken effect. It matches
// connection loss.
var ErrUncertain = exec.ErrUncertain

// fence holds the nodes on which the writes of a client depend.
type fence struct {
	err    error // of every write; nil if the fence is valid
	guards []guard
	checks []jute.Request // of all guards
}

// guard is the part of a fence that has one error.
type guard struct {
	tenure context.Context // writes are not sent after its end; nil in a TransactionOperation
	lost   error
	checks []jute.Request
}

// newFence returns the fence of env with further nodes, which are paths of env. Writes fail with lost if one of these
// is gone, and without a request, with the cause of tenure, if tenure has ended. If an argument is invalid, every write
// fails.
func newFence(env *environment, tenure context.Context, lost error, nodes ...string) *fence { //nolint:revive // of env
	g, err := newGuard(env, lost, nodes)
	if err != nil {
		return &fence{err: err}
	}
	g.tenure = tenure
	f := &fence{}
	if env.fence != nil {
		f.err = env.fence.err
		f.guards = append(f.guards, env.fence.guards...)
	}
	f.guards = append(f.guards, *g)
	for _, g := range f.guards {
		f.checks = append(f.checks, g.checks...)
	}
	return f
}

func newGuard(env *environment, lost error, nodes []string) (*guard, error) {
	if lost == nil || len(nodes) == 0 {
		return nil, fmt.Errorf("%w: a fence without nodes or without an error", ErrBadArguments)
	}
	g := &guard{lost: lost, checks: make([]jute.Request, len(nodes))}
	for i, node := range nodes {
		if err := zkpath.Validate(node, false); err != nil {
			return nil, fmt.Errorf("fence: %w", err)
		}
		g.checks[i] = jute.Request{Op: jute.OpCheck, Path: env.namespace.full(node), Version: -1}
	}
	return g, nil
}

// ended returns the error of a write that must not be sent, or nil.
func (f *fence) ended() error {
	if f.err != nil {
		return f.err
	}
	for _, g := range f.guards {
		if g.tenure.Err() != nil {
			return context.Cause(g.tenure)
		}
	}
	return nil
}

// around returns a transaction of the checks and r.
func (f *fence) around(r jute.Request) jute.Request {
	ops := make([]jute.Request, 0, len(f.checks)+max(1, len(r.Ops)))
	ops = append(ops, f.checks...)
	if r.Op == jute.OpMulti {
		ops = append(ops, r.Ops...)
	} else {
		ops = append(ops, r)
	}
	return jute.Request{Op: jute.OpMulti, Ops: ops}
}

// refusal returns the error of check i, which the server has refused with err.
func (f *fence) refusal(i int, err error) error {
	for _, g := range f.guards {
		if i < len(g.checks) {
			return &fenceError{op: ofClient, node: g.checks[i].Path, err: g.meaning(err)}
		}
		i -= len(g.checks)
	}
	return err
}

// meaning returns the error for an answer err to a check. g may be nil.
func (g *guard) meaning(err error) error {
	if g != nil && err == zk.ErrNoNode {
		return g.lost
	}
	return err
}

// fenceError is the error of a write that a fence has refused. named adds the node: telemetry takes errors without
// paths.
type fenceError struct {
	op   int // in the transaction
	node string
	err  error
}

// ofClient stands for a check that a fenced client has added.
const ofClient = -1

// Error returns the cause.
func (f *fenceError) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *fenceError) Unwrap() error { return f.err }

// IsAnswer marks an error with a known outcome.
func (f *fenceError) IsAnswer() {}

// named returns the error with the node of the fence in its text.
func (f *fenceError) named() error {
	switch {
	case f.op != ofClient:
		return &refusedError{index: f.op, verb: "check", path: f.node, err: f.err}
	case f.err == zk.ErrNoAuth:
		return fmt.Errorf("fence %s cannot be read: %w", f.node, f.err)
	}
	return fmt.Errorf("fence %s: %w", f.node, f.err)
}

// write sends the write r. next handles the answer, as in send. A fenced client sends r behind the checks of its fence,
// and sends it again after a lost answer only if it is repeatable.
func (c *call) write(r jute.Request, repeatable bool, next func()) {
	if f := c.env.fence; f != nil && !exec.IsUnfenced(c.Context()) {
		c.writeFenced(f, r, repeatable, next)
		return
	}
	c.send(r, next)
}

func (c *call) writeFenced(f *fence, r jute.Request, repeatable bool, next func()) {
	if err := f.ended(); err != nil {
		c.Finish(err)
		return
	}
	if !c.prepare(f.around(r)) {
		return
	}
	c.SendWrite(repeatable, func() {
		c.takeOut(f, r)
		if next == nil {
			c.Protocol.(exec.Replier).Replied()
			return
		}
		next()
	})
}

// takeOut replaces the answer to the transaction by the answer to r.
func (c *call) takeOut(f *fence, r jute.Request) {
	results, n := c.Reply.Results, len(f.checks)
	if c.Request.Err != nil {
		if i := failedAt(results); i >= 0 && i < n {
			c.Request.Err = f.refusal(i, c.Request.Err)
		}
	} else if len(results) != n+max(1, len(r.Ops)) { // the server has answered another request
		c.Request.Err = jute.ErrMarshalling
	}
	c.Reply = jute.Reply{}
	switch {
	case len(results) <= n:
	case r.Op == jute.OpMulti:
		c.Reply.Results = results[n:]
	case c.Request.Err == nil:
		c.Reply.Path, c.Reply.Stat = results[n].Path, results[n].Stat
	}
}

// failedAt returns the index of the operation that failed the transaction, or -1.
func failedAt(results []jute.Result) int {
	for i, r := range results {
		if r.Op == jute.OpError && r.Code != jute.CodeOK && r.Code != jute.CodeRuntimeInconsistency {
			return i
		}
	}
	return -1
}

// expanded returns the requests of all operations. A fence has several.
func (o *transactionOp) expanded() []jute.Request {
	if !o.fenced {
		return o.requests
	}
	var all []jute.Request
	for i, op := range o.ops {
		if op.guard != nil {
			all = append(all, op.guard.checks...)
		} else {
			all = append(all, o.requests[i])
		}
	}
	return all
}

// fold replaces the results by one for each operation, and returns the error for an answer err.
func (o *transactionOp) fold(err error) error {
	all := o.Reply.Results
	if !o.fenced || len(all) == 0 {
		return err
	}
	failed := failedAt(all)
	var folded []jute.Result
	for i, op := range o.ops {
		n := 1
		if op.guard != nil {
			n = len(op.guard.checks)
		}
		if len(all) < n {
			return jute.ErrMarshalling
		}
		result := all[n-1]
		if failed >= 0 && failed < n {
			result = all[failed]
			if op.guard != nil && err != nil {
				err = &fenceError{op: i, node: op.guard.checks[failed].Path, err: op.guard.meaning(err)}
			}
		}
		folded = append(folded, result)
		all, failed = all[n:], failed-n
	}
	o.Reply.Results = folded
	return err
}

// unfenceable returns the error of a write that a fenced client refuses.
func (c *call) unfenceable() error {
	if c.env.fence == nil {
		return nil
	}
	return c.wrap(fmt.Errorf("%w: the protocol has no %s in a transaction, and so none of a fenced client",
		jute.ErrUnimplemented, c.verb))
}
