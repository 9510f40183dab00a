package desired

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/internal/waitqueue"
)

// Providers of the program, for ACLs and compression, may block, panic or end their goroutine. So a node whose client
// has such providers calls them on a goroutine of its own, before its write is planned and behind its read: it waits
// for them alone. Nothing waits for that goroutine when the node or the client is closed, because nothing can end it.

// isolated calls fn, which calls providers of the program. failed gets the error of one that panics or ends the
// goroutine.
func isolated(fn func(), failed func(err error)) {
	err := usercode.Exited("a provider")
	defer func() {
		if err != nil {
			failed(err)
		}
	}()
	err = usercode.Call("a provider", fn)
}

// isPrepared reports whether the operations of the next write are known. The caller holds mu.
func (n *Node) isPrepared() bool {
	p := n.prepared
	return p != nil && p.action == n.action && p.path == n.local && p.change == n.gen &&
		(p.action == touch || p.version == n.version)
}

// prepare makes the operations of the next write of a node. The caller holds mu, and calls send without it.
func (r *Reconciler) prepare(n *Node) (send func()) {
	p := r.plannedOf(n)
	n.preparing = true
	prepared := func(err error) {
		r.locked(func() {
			n.preparing = false
			if n.isGone() {
				return
			}
			n.prepared = &p
			switch isNext := n.isPrepared() && !n.busy; {
			case err == nil:
			case isNext && waitqueue.IsPassing(err):
				n.prepared = nil
				r.pause(n)
			case isNext:
				n.prepared = nil
				r.refuse(n, err)
			default:
				n.prepared = nil
			}
			r.enqueue(n)
		})
	}
	return func() {
		go isolated(func() {
			err := hook.EnsureNamespace(n.spec.Client)
			if err == nil {
				p.operations = p.build(n.spec.Client.TransactionOp())
			}
			prepared(err)
		}, prepared)
	}
}

// decode handles the answer to a read of a node, whose data is as it is stored. A removal needs no data. The caller
// holds mu.
func (r *Reconciler) decode(n *Node, stat *zk.Stat, stored []byte, err error) {
	if err != nil || stat == nil || n.removing {
		r.looked(n, stat, nil, err)
		return
	}
	n.decoding = stat
	r.decompress(n, n.path, stored, func(data []byte, err error) {
		if n.decoding == stat { // else the node has not waited
			r.looked(n, r.decoded(n), data, err)
		}
	})
}

// decompress calls then with the data of stored bytes, for a node. The caller holds mu, and so does then.
func (r *Reconciler) decompress(n *Node, path string, stored []byte, then func(data []byte, err error)) {
	if !n.calls {
		then(hook.Decompress(r.client, path, stored, false))
		return
	}
	done := func(data []byte, err error) { r.locked(func() { then(data, err) }) }
	go isolated(func() { done(hook.Decompress(r.client, path, stored, false)) }, func(err error) { done(nil, err) })
}

// decoded ends the wait of a node for providers that decode what was read of it, and returns the Stat of that read. The
// caller holds mu.
func (r *Reconciler) decoded(n *Node) (stat *zk.Stat) {
	stat, n.decoding = n.decoding, nil
	return stat
}
