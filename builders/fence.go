package builders

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/opconfig"
	"github.com/gocurator/curator/zkpath"
)

// ErrUncertain is wrapped by the error of a write that may have taken effect: of a fenced one whose answer was lost,
// which matches connection loss too, of a delete after which there may be another node, which does as well (see
// [Delete.ForPath]), and of any one that was sent before its context ended, which matches the error of the context too.
var ErrUncertain = exec.ErrUncertain

// fence holds the nodes on which the writes of a client depend.
type fence struct {
	err    error // of every write; nil if the fence is valid
	guards []guard
	checks []jute.Request // of all guards
}

// guard is the part of a fence that has one error.
type guard struct {
	holding context.Context // writes are not sent after its end; nil in a TransactionOperation
	lost    error
	client  *opconfig.Config
	nodes   []string // with their namespaces, without the chroot
	checks  []jute.Request
}

// of returns the guard for requests of a client, which may have another chroot.
func (g *guard) of(client *opconfig.Config) *guard {
	if client == g.client {
		return g
	}
	other := *g
	other.client, other.checks = client, slices.Clone(g.checks)
	for i := range other.checks {
		if check := &other.checks[i]; !check.AtRoot {
			check.Path, check.AtRoot = zkpath.Join(g.client.Chroot(), check.Path), true
		}
	}
	return &other
}

// newFence returns the fence of env with a further guard. Writes fail if one of its nodes is gone, and without a
// request, with the cause of holding, if holding has ended. With err every write fails.
func newFence(env *environment, holding context.Context, g *guard, err error) *fence { //nolint:revive // of env
	if err != nil {
		return &fence{err: err}
	}
	f := &fence{}
	if env.fence != nil {
		f.err = env.fence.err
		f.guards = append(f.guards, env.fence.guards...)
	}
	further := *g.of(env.Config)
	further.holding = holding
	f.guards = append(f.guards, further)
	for _, g := range f.guards {
		f.checks = append(f.checks, g.checks...)
	}
	return f
}

// newGuard returns a guard of nodes that must have a version, -1 for any.
func newGuard(env *environment, lost error, version int32, nodes []string) (*guard, error) {
	if lost == nil || len(nodes) == 0 {
		return nil, fmt.Errorf("%w: a fence without nodes or without an error", ErrBadArguments)
	}
	g := &guard{lost: lost, client: env.Config}
	for _, node := range nodes {
		if err := zkpath.Validate(node, false); err != nil {
			return nil, fmt.Errorf("fence: %w", err)
		}
		full := env.namespace.full(node)
		g.nodes = append(g.nodes, full)
		g.checks = append(g.checks, jute.Request{Op: jute.OpCheck, Path: full, Version: version})
	}
	return g, nil
}

// joinFences returns one fence of several, which may be of several clients. It has the error of the first one.
func joinFences(fences ...TransactionOperation) TransactionOperation {
	joined := fences[0]
	if joined.err != nil {
		return joined
	}
	g := *joined.guard
	for _, f := range fences[1:] {
		if f.err != nil {
			return f
		}
		g.nodes = slices.Concat(g.nodes, f.guard.nodes)
		g.checks = slices.Concat(g.checks, f.guard.of(g.client).checks)
	}
	joined.guard = &g
	return joined
}

// ended returns the error of a write that must not be sent, or nil.
func (f *fence) ended() error {
	if f.err != nil {
		return f.err
	}
	for _, g := range f.guards {
		if g.holding.Err() != nil {
			return context.Cause(g.holding)
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
			return &fenceError{op: ofClient, node: g.nodes[i], err: g.meaning(err)}
		}
		i -= len(g.checks)
	}
	return err
}

// meaning returns the error for an answer err to a check. g may be nil.
func (g *guard) meaning(err error) error {
	if g != nil && (err == zk.ErrNoNode || err == zk.ErrBadVersion) {
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

// takeOut replaces the answer to the transaction by the answer to r.
func (c *call) takeOut(f *fence, r jute.Request) {
	results, err, n := c.op.Reply().Results, c.op.Err(), len(f.checks)
	if err != nil {
		if i := failedAt(results); i >= 0 && i < n {
			err = f.refusal(i, err)
		}
	} else if len(results) != n+max(1, len(r.Ops)) { // the server has answered another request
		err = jute.ErrMarshalling
	}
	var reply jute.Reply
	switch {
	case len(results) <= n:
	case r.Op == jute.OpMulti:
		reply.Results = results[n:]
	case err == nil:
		reply.Path, reply.Stat = results[n].Path, results[n].Stat
	}
	c.op.SetAnswer(reply, err)
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
			all = append(all, op.guard.of(o.env.Config).checks...)
		} else {
			all = append(all, o.requests[i])
		}
	}
	return all
}

// fold replaces the results by one for each operation, and returns the error for an answer err.
func (o *transactionOp) fold(err error) error {
	all := o.op.Reply().Results
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
				err = &fenceError{op: i, node: op.guard.nodes[failed], err: op.guard.meaning(err)}
			}
		}
		folded = append(folded, result)
		all, failed = all[n:], failed-n
	}
	o.op.Reply().Results = folded
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
