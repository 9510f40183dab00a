package desired

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// batches are the writes of one plan.
type batches struct{ list []*batch }

// batch is the nodes that one transaction writes. Those that are removed have transactions of their own, of the client
// of the whole tree: they are never behind the fence of their client, and need no namespace, for whose nodes an
// ACLProvider of the program would be asked.
type batch struct {
	client  *framework.Client
	cleanUp bool
	alone   bool
	nodes   []*Node
	ops     int
	bytes   int
}

// add puts a node into a batch, and returns the batch if it is full.
func (b *batches) add(n *Node) (full *batch) {
	ops, size := 1, len(n.path)+len(n.data)+64
	if n.action == replace {
		ops = 2
	}
	client, cleanUp := n.spec.Client, n.action == remove
	if cleanUp {
		client = n.r.client
	}
	at := slices.IndexFunc(b.list, func(b *batch) bool {
		return !b.alone && !n.alone && b.client == client && b.cleanUp == cleanUp
	})
	var in *batch
	if at >= 0 {
		in = b.list[at]
		if in.ops+ops > maxOperations || in.bytes+size > maxBytes {
			full = in
			b.list = slices.Delete(b.list, at, at+1)
			in = nil
		}
	}
	if in == nil {
		in = &batch{client: client, cleanUp: cleanUp, alone: n.alone}
		b.list = append(b.list, in)
	}
	in.nodes, in.ops, in.bytes = append(in.nodes, n), in.ops+ops, in.bytes+size
	return full
}

// planned is a write of a node, as it is sent.
type planned struct {
	n       *Node
	action  action
	path    string // in the namespace; of a removal in the whole tree
	mode    builders.CreateMode
	data    []byte
	change  int // number of the data
	version int32
	shared  bool // the recursive watch of its parent was requested before

	operations []builders.TransactionOperation // that are prepared
}

// plannedOf returns the next write of a node. The caller holds mu.
func (r *Reconciler) plannedOf(n *Node) planned {
	p := planned{
		n: n, action: n.action, path: n.local, mode: n.mode(), data: n.data, change: n.gen, version: n.version,
		shared: r.sharesWatch(n.parent),
	}
	switch p.action {
	case touch:
		p.version = -1
	case remove:
		p.path = n.path
	}
	return p
}

// build returns the operations of the write. It calls providers of the program.
func (p *planned) build(op builders.TransactionOp) []builders.TransactionOperation {
	build := func() builders.TransactionOperation {
		c := op.Create().WithMode(p.mode).WithTTL(p.n.spec.TTL)
		if len(p.n.spec.ACL) > 0 {
			c = c.WithACL(p.n.spec.ACL...)
		}
		return c.ForPath(p.path, p.data)
	}
	switch p.action {
	case create:
		return []builders.TransactionOperation{build()}
	case replace:
		return []builders.TransactionOperation{op.Delete().WithVersion(p.version).ForPath(p.path), build()}
	case remove:
		return []builders.TransactionOperation{op.Delete().WithVersion(p.version).ForPath(p.path)}
	}
	return []builders.TransactionOperation{op.SetData().WithVersion(p.version).ForPath(p.path, p.data)}
}

// write sends a transaction. The caller holds mu, and calls send without it.
func (r *Reconciler) write(b *batch) (send func()) {
	flight, session := r.flight, r.session
	if !b.cleanUp { // a parent before its children
		slices.SortStableFunc(b.nodes, func(a, b *Node) int { return cmp.Compare(len(a.path), len(b.path)) })
	} else {
		slices.SortStableFunc(b.nodes, func(a, b *Node) int { return cmp.Compare(len(b.path), len(a.path)) })
	}
	writes := make([]planned, len(b.nodes))
	for i, n := range b.nodes {
		r.begin(n)
		writes[i] = r.plannedOf(n)
		if n.isPrepared() {
			writes[i].operations = n.prepared.operations
		}
		n.prepared = nil
		if n.action == create || n.action == replace {
			n.claimed = true
		}
	}
	r.writing++
	return func() {
		client := waitqueue.ForLibrary(b.client)
		t, op := client.Transaction(), client.TransactionOp()
		var ops []builders.TransactionOperation
		var of []int // the write of each operation
		for i := range writes {
			if writes[i].operations == nil {
				writes[i].operations = writes[i].build(op)
			}
			for _, o := range writes[i].operations {
				ops, of = append(ops, o), append(of, i)
			}
		}
		ctx := flight
		if b.cleanUp {
			ctx = hook.OutOfFence(flight)
		}
		callback := func(_ context.Context, ev callbacks.Event) {
			r.locked(func() { r.written(flight, session, writes, of, ev) })
		}
		err := t.InBackground(callback).WithUnhandledErrorListener(ignoreError).ForOperations(ctx, ops...)
		if err != nil {
			callback(flight, callbacks.Event{Err: err})
		}
	}
}

// written handles the answer to a transaction.
func (r *Reconciler) written(flight pipeline, session int64, writes []planned, of []int, ev callbacks.Event) {
	r.writing--
	failed, reason := -1, ev.Err
	if ev.Err != nil && !isTransient(ev.Err) {
		for i, res := range ev.Results {
			if res.Err != nil && !errors.Is(res.Err, jute.ErrRuntimeInconsistency) {
				failed, reason = of[i], res.Err
				break
			}
		}
	}
	if failed < 0 && len(writes) == 1 {
		failed = 0
	}
	r.suspect(writes, ev.Err)
	for i := range writes {
		w := &writes[i]
		switch {
		case ev.Err == nil:
			r.wrote(w, session, ev.Results[slices.Index(of, i):])
		case isTransient(ev.Err) || errors.Is(ev.Err, framework.ErrNotReadOnly):
			r.unanswered(w, ev.Err)
		case waitqueue.IsPassing(reason):
			r.tryLater(w)
		case i == failed:
			r.writeRefused(w, reason)
		default: // the others go again
			w.n.alone = failed < 0
			if r.answered(w.n) {
				r.want(w.n, w.action)
				if w.action == create && errors.Is(reason, zk.ErrNoNode) && !w.n.spec.WithoutParents && r.above(w.n) == nil {
					r.createParent(w.n) // it may be missing, too: not one transaction for each
				}
			}
		}
	}
	if isTransient(ev.Err) && flight == r.flight {
		r.interruptedBy(ev.Err)
	}
}

// unanswered handles a write that may have taken effect.
func (r *Reconciler) unanswered(w *planned, err error) {
	n := w.n
	n.known = false
	if w.action == create && waitqueue.IsOutage(err) && !errors.Is(err, builders.ErrNotSent) {
		r.behind, n.uncertain = true, true
		if !n.named {
			n.sent = w.data
		}
	}
	counts := r.answered(n)
	if err := n.hangUp(err); err != nil && w.change == n.gen && !n.isGone() { // also behind the next connection
		r.refuse(n, err)
		return
	}
	if !counts {
		return
	}
	if errors.Is(err, framework.ErrNotReadOnly) { // the next connection looks again
		r.pause(n)
		return
	}
	r.want(n, look)
}

func (r *Reconciler) tryLater(w *planned) {
	if r.answered(w.n) {
		r.pause(w.n)
	}
}

// wrote handles a write that has taken effect in a session. results begins with that of its first operation. The end of
// the session may be known already: then it says nothing.
func (r *Reconciler) wrote(w *planned, session int64, results []callbacks.OperationResult) {
	n := w.n
	if n.isGone() {
		r.ended(n)
		return
	}
	n.action = nothing
	if n.spec.Touch > 0 {
		n.touchAt = r.after(n.spec.Touch)
	}
	switch w.action {
	case create:
		if !n.named {
			r.name(n, fullPath(n.spec.Client, results[0].ResultPath))
		}
		n.owner, n.version, n.known = session, 0, true
	case replace:
		n.owner, n.version, n.known = session, 0, true
	case remove:
		r.ended(n)
		r.forget(n, nil)
		return
	default:
		n.known = results[0].Stat != nil
		if n.known {
			n.version = results[0].Stat.Version
		}
	}
	if session == r.session && !n.removing {
		r.isRight(n, w.change)
	}
	isWatched := n.watched || w.shared && r.sharesWatch(n.parent)
	if r.answered(n) && (n.removing || n.gen != w.change || !isWatched) {
		r.want(n, look)
	}
}

// writeRefused handles the answer to a write that the server has refused.
func (r *Reconciler) writeRefused(w *planned, err error) {
	n := w.n
	if !r.answered(n) {
		return
	}
	n.known = false
	switch {
	case w.action == create && errors.Is(err, zk.ErrNoNode):
		r.parentMissing(n, err)
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		r.want(n, look)
	case w.action == remove && errors.Is(err, zk.ErrNotEmpty):
		r.forget(n, err)
	default:
		r.refuse(n, err)
	}
}

// parentMissing creates the parent of a node. The other nodes of the parent wait for that.
func (r *Reconciler) parentMissing(n *Node, err error) {
	if n.removing {
		r.forget(n, nil)
		return
	}
	above := r.above(n)
	isParent := above != nil && above.path == n.parent.path
	switch {
	case n.spec.WithoutParents && !isParent:
		r.refuse(n, errtext.Wrap(err, "", "parent %s", zkpath.Parent(n.spec.Path)))
		return
	case n.isFought(): // others delete it
		r.pause(n)
		return
	case isParent || above != nil && !above.present:
		r.awaitAbove(n, above)
		return
	}
	r.want(n, create)
	r.createParent(n)
}

// createParent creates the parent of a node, unless that is under way. The caller holds mu.
func (r *Reconciler) createParent(n *Node) {
	p, flight := n.parent, r.flight
	if p.creating || flight == nil {
		return
	}
	p.creating = true
	answered := func(ev callbacks.Event) {
		if flight != r.flight { // the next connection has looked again
			return
		}
		p.creating = false
		switch {
		case ev.Err == nil:
		case isTransient(ev.Err):
			r.interruptedBy(ev.Err)
		default:
			for _, n := range p.waiting {
				switch {
				case n.awaits != p || n.queued != behindParent || n.parent != p || n.action != create:
				case waitqueue.IsPassing(ev.Err):
					r.pause(n)
				default:
					r.refuse(n, ev.Err)
				}
			}
		}
		r.resume(p)
	}
	send := func() {
		above := zkpath.Join(zkpath.Parent(n.spec.Path), "x")
		op := waitqueue.ForLibrary(n.spec.Client).CheckExists().CreatingParentContainersIfNeeded()
		r.submit(flight, op, above, answered)
	}
	if n.calls {
		inner := send
		send = func() {
			go isolated(inner, func(err error) { r.locked(func() { answered(callbacks.Event{Err: err}) }) })
		}
	}
	r.sendLater(send)
}

// parentIsThere ends the pause of the desired nodes below a node that is there now. The caller holds mu.
func (r *Reconciler) parentIsThere(above *Node) {
	p := r.parents[above.path]
	if p == nil {
		return
	}
	for n := range p.nodes {
		r.steps++
		if !n.present && !n.retryAt.IsZero() {
			n.retryAt, n.failures = time.Time{}, 0
			r.want(n, look)
		}
	}
}

// above returns the nearest desired node above n, or nil. It has its own mode, data and ACL, so it is never created as
// a mere parent. The caller holds mu.
func (r *Reconciler) above(n *Node) *Node {
	for path := n.parent.path; path != "/"; path = zkpath.Parent(path) {
		if above := r.byPath[path]; above != nil && !above.removing {
			return above
		}
	}
	return nil
}

// awaitAbove creates n when the desired node above it is there.
func (r *Reconciler) awaitAbove(n, above *Node) {
	switch {
	case above.busy || above.action != nothing: // it is on its way, and n travels with it or behind it
		n.hold = r.reads
		r.want(n, create)
	case above.present: // we have not heard of its end yet
		r.want(above, look)
		n.hold = r.reads + 1
		r.want(n, create)
	default: // it pauses
		r.pause(n) // until parentIsThere
	}
}

// awaitsParents reports whether n, which is to be created, has to wait for the creation of a parent, or for what comes
// of the desired node above it. If so, it waits in the list of that parent. The caller holds mu.
func (r *Reconciler) awaitsParents(n *Node) bool {
	for below := n; below != nil && below.action == create; below = r.byPath[below.parent.path] {
		p, above := below.parent, r.byPath[below.parent.path]
		switch {
		case p.creating, above != nil && above.isUnderWay():
			n.queued, n.awaits = behindParent, p
			p.waiting = append(p.waiting, n)
			return true
		case above != nil && (above.present || above.removing): // if it is missing, the create shows that
			return false
		}
	}
	return false
}

// isUnderWay reports whether a request or a provider is to show what comes of a missing node. The caller holds mu.
func (n *Node) isUnderWay() bool {
	return !n.present && !n.removing && (n.busy || n.preparing || n.action == look || n.action == find)
}

// resume has the nodes that wait behind a parent, or nil, planned again. Those that have to wait longer come back. The
// caller holds mu.
func (r *Reconciler) resume(p *parent) {
	if p == nil {
		return
	}
	waiting := p.waiting
	p.waiting = nil
	for _, n := range waiting {
		r.steps++
		if n.queued == behindParent && n.awaits == p {
			n.queued = nowhere
			r.enqueue(n)
		}
	}
}

// resumeBelow is resume for the nodes that wait for what comes of a desired node. The caller holds mu.
func (r *Reconciler) resumeBelow(n *Node) { r.resume(r.parents[n.path]) }

// submitReads sends a multiRead.
func (r *Reconciler) submitReads(flight pipeline, reads []builders.Read, answered func(callbacks.Event)) {
	callback := func(_ context.Context, ev callbacks.Event) { r.locked(func() { answered(ev) }) }
	err := r.client.MultiRead().Undecompressed().InBackground(callback).WithUnhandledErrorListener(ignoreError).
		ForReads(flight, reads...)
	if err != nil {
		callback(flight, callbacks.Event{Err: err})
	}
}

// remove makes a node undesired.
func (r *Reconciler) remove(n *Node) {
	n.removing, n.retryAt, n.failures, n.rounds = true, time.Time{}, 0, 0
	n.setErr(nil)
	switch {
	case n.spec.Keep, !n.claimed && !n.busy && !n.uncertain:
		r.forget(n, nil)
	case n.decoding != nil: // a provider that blocks would put it off
		r.looked(n, r.decoded(n), nil, nil)
	case n.busy:
		n.again = true
	case n.present && n.known:
		r.want(n, remove)
	default:
		r.want(n, look)
	}
}
