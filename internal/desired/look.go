package desired

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// lookMany reads nodes with one request. The caller holds mu, and calls send without it.
func (r *Reconciler) lookMany(nodes []*Node) (send func()) {
	flight := r.flight
	reads := make([]builders.Read, len(nodes))
	for i, n := range nodes {
		r.begin(n)
		reads[i] = builders.Read{Path: n.path}
	}
	r.reads++
	answered := func(ev callbacks.Event) {
		r.answers++
		for i, n := range nodes {
			if ev.Err != nil {
				r.lookFailed(n, ev.Err)
				continue
			}
			res := ev.Reads[i]
			r.decode(n, &res.Stat, res.Data, res.Err)
		}
		switch {
		case ev.Err == nil || flight != r.flight:
		case errors.Is(ev.Err, framework.ErrUnimplemented):
			r.watchOneShot()
		case isTransient(ev.Err):
			r.interruptedBy(ev.Err)
		}
	}
	return func() {
		r.submitReads(flight, reads, answered)
	}
}

// lookOne reads a node and sets a one-shot watch, if its parent has no recursive one.
func (r *Reconciler) lookOne(n *Node) (send func()) {
	flight, session, path, blind, watch := r.flight, r.session, n.path, n.blind, !r.sharesWatch(n.parent)
	if n.watcher == nil {
		n.watcher = r.watcher
	}
	r.begin(n)
	r.reads++
	answered := func(ev callbacks.Event) {
		r.answers++
		if isTransient(ev.Err) {
			r.lookFailed(n, ev.Err)
			if flight == r.flight {
				r.interruptedBy(ev.Err)
			}
			return
		}
		err := ev.Err
		if err == nil && ev.Stat == nil {
			err = zk.ErrNoNode
		}
		isSet := err == nil || blind && errors.Is(err, zk.ErrNoNode)
		if watch && isSet && session == r.session { // a callback of the program may hold the answer back
			n.watched = true
			if n.isGone() || n.path != path {
				n.watched = false
				if !r.closed {
					r.unwatch(n.watcher, path)
				}
			}
		}
		if blind {
			r.looked(n, ev.Stat, nil, err)
			return
		}
		r.decode(n, ev.Stat, ev.Data, err)
	}
	return func() {
		var op operation
		switch {
		case blind && watch:
			op = r.client.CheckExists().UsingWatcher(n.watcher)
		case blind:
			op = r.client.CheckExists()
		default:
			op = r.client.GetData().Undecompressed().UsingWatcher(n.watcher)
		}
		r.submit(flight, op, path, answered)
	}
}

// lookFailed handles a read without an answer.
func (r *Reconciler) lookFailed(n *Node, err error) {
	switch {
	case !r.answered(n):
	case isTransient(err) || errors.Is(err, framework.ErrUnimplemented):
		r.want(n, look)
	case waitqueue.IsPassing(err):
		r.pause(n)
	case errors.Is(err, builders.ErrReplyTooLarge):
		n.blind = true // the data is compared by its version
		r.want(n, look)
	default:
		r.refuse(n, err)
	}
}

// looked handles the answer to a read of a node.
func (r *Reconciler) looked(n *Node, stat *zk.Stat, data []byte, err error) {
	undecodable := errors.Is(err, framework.ErrDataInconsistency) && stat != nil && stat.Czxid != 0
	switch {
	case err != nil && !undecodable && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth):
		r.lookFailed(n, err)
	case !r.answered(n):
	case errors.Is(err, zk.ErrNoNode):
		ends := n.present && !n.removing && n.spec.EndWhenDeleted
		r.isMissing(n, ErrDeleted)
		n.uncertain, n.inherits = false, false
		if ends {
			r.forget(n, ErrDeleted)
			return
		}
		if n.removing {
			r.forget(n, nil)
			return
		}
		r.mustWrite(n, create)
	case errors.Is(err, zk.ErrNoAuth) && !n.blind:
		n.blind = true // newer servers refuse the Stat too
		r.want(n, look)
	case errors.Is(err, zk.ErrNoAuth):
		r.unreadable(n, err)
	default:
		same := !undecodable && bytes.Equal(data, n.data)
		if n.blind {
			same = n.known && n.version == stat.Version && n.owner == stat.EphemeralOwner && n.written == n.gen
		}
		r.found(n, stat, same)
	}
}

// found compares the node that is there with the desired one.
func (r *Reconciler) found(n *Node, stat *zk.Stat, same bool) {
	owner, ephemeral := stat.EphemeralOwner, n.spec.Mode.IsEphemeral()
	isOurs := ephemeral && r.sessions[owner] || !ephemeral && !isSession(owner)
	isOld := !isOurs && n.inherits && (r.sessions[owner] || !isSession(owner))
	if n.removing && (!isOurs && !isOld || !n.claimed) {
		r.forget(n, nil)
		return
	}
	if !isOurs && !isOld {
		if ephemeral && n.present && n.owner == r.session && n.spec.EndWhenDeleted { // ours was deleted before
			r.isMissing(n, ErrDeleted)
			r.forget(n, ErrDeleted)
			return
		}
		r.isMissing(n, foreignTo(owner))
		n.claimed, n.inherits = false, false
		r.refuse(n, foreignTo(owner))
		return
	}
	n.claimed, n.known, n.owner, n.version = true, true, owner, stat.Version
	switch {
	case n.removing:
		r.mustWrite(n, remove)
	case isOld, ephemeral && owner != r.session: // it is to be deleted: by us, or with its session
		r.isMissing(n, framework.ErrSessionLost)
		n.known = true
		r.mustWrite(n, replace)
	case !same:
		r.mustWrite(n, set)
	default:
		n.action = nothing
		r.isRight(n, n.gen)
	}
}

// isSession reports whether the owner of a node is a session. Containers and nodes with a TTL have marks there.
func isSession(owner int64) bool {
	const container = -1 << 63
	return owner != 0 && owner != container && uint64(owner)>>56 != 0xff
}

// unreadable handles a node of which the server shows nothing. If it was created in this session, or in any if it
// is not ephemeral, it is ours as far as anybody can know; else a create shows whether it exists. If a create has no
// answer, an ephemeral node may be that of somebody else, and is left alone.
func (r *Reconciler) unreadable(n *Node, err error) {
	ours := n.claimed && n.present && n.owner == r.session
	if !n.spec.Mode.IsEphemeral() {
		ours = n.claimed && (n.present || n.uncertain)
	}
	switch {
	case n.removing && ours:
		n.known, n.version = true, -1
		r.mustWrite(n, remove)
	case n.removing: // it ends with its session
		r.forget(n, err)
	case ours && n.written == n.gen:
		n.action = nothing
		r.isRight(n, n.gen)
	case ours:
		n.known, n.version = true, -1
		r.mustWrite(n, set)
	case n.tried: // the create has found it
		n.tried = false
		r.isMissing(n, err)
		r.refuse(n, err)
	default:
		n.tried = true
		r.isMissing(n, err)
		r.mustWrite(n, create)
	}
}

// mustWrite makes a write the next action of a node, or pauses first.
func (r *Reconciler) mustWrite(n *Node, a action) {
	if n.isFought() {
		r.pause(n)
		return
	}
	n.hold = r.reads
	r.want(n, a)
}

// isFought counts a write of the node, and reports whether there were many of the same data in a short time: another
// program may want something else of the node.
func (n *Node) isFought() bool {
	if now := time.Now(); now.Sub(n.roundsFrom) > firstPause || n.roundsOf != n.gen {
		n.rounds, n.roundsOf, n.roundsFrom = 0, n.gen, now
	}
	n.rounds++
	return n.rounds > maxRounds
}

// find looks for a sequential node whose create has no answer: by its protection, or by its session and the data of
// that create.
func (r *Reconciler) find(n *Node) (send func()) {
	flight := r.flight
	r.begin(n)
	prefix := zkpath.Node(n.path)
	listed := func(ev callbacks.Event) {
		r.ended(n)
		if n.isGone() {
			return
		}
		if ev.Err != nil && !errors.Is(ev.Err, zk.ErrNoNode) {
			r.findFailed(flight, n, ev.Err)
			return
		}
		var paths []string
		for _, child := range ev.Children {
			path := zkpath.Join(n.parent.path, child)
			if r.byPath[path] == nil && len(child) == len(prefix)+10 && strings.HasPrefix(child, prefix) {
				paths = append(paths, path)
			}
		}
		switch {
		case n.spec.ProtectionID != "" && len(paths) > 0:
			r.name(n, paths[0])
			r.want(n, look)
		case n.spec.ProtectionID != "" || len(paths) == 0 || !n.spec.Mode.IsEphemeral():
			n.uncertain = false
			r.want(n, look)
		default:
			r.begin(n)
			r.sendLater(func() { r.identify(flight, n, paths) })
		}
	}
	return func() { r.submit(flight, r.client.GetChildren(), n.parent.path, listed) }
}

// identify reads the nodes that a create without an answer may have created, one after the other.
func (r *Reconciler) identify(flight pipeline, n *Node, paths []string) {
	path := paths[0]
	r.submit(flight, r.client.GetData().Undecompressed(), path, func(ev callbacks.Event) {
		switch {
		case errors.Is(ev.Err, zk.ErrNoAuth) && !n.isGone():
			r.sendLater(func() { r.identifyOwner(flight, n, paths, ev.Err) })
		case ev.Err != nil || n.isGone() || !r.sessions[ev.Stat.EphemeralOwner]:
			r.identified(flight, n, paths, false, ev.Err)
		default:
			r.decompress(n, path, ev.Data, func(data []byte, err error) {
				is := err == nil && bytes.Equal(data, n.sent) && r.byPath[path] == nil
				if errors.Is(err, framework.ErrDataInconsistency) { // it is not what was sent
					err = nil
				}
				r.identified(flight, n, paths, is, err)
			})
		}
	})
}

// identifyOwner looks whose the first of the paths is, which we may not read: a Stat may be there without a permission.
// One of ours may be that of the create, so the node is looked for again when it can be read.
func (r *Reconciler) identifyOwner(flight pipeline, n *Node, paths []string, refusal error) {
	r.submit(flight, r.client.CheckExists(), paths[0], func(ev callbacks.Event) {
		err := ev.Err
		if err == nil && ev.Stat != nil && r.sessions[ev.Stat.EphemeralOwner] {
			err = refusal
		}
		r.identified(flight, n, paths, false, err)
	})
}

// identified handles the read of the first of the paths, by which the node there is that of the create, or not. An
// error says neither, unless there is no node. The caller holds mu.
func (r *Reconciler) identified(flight pipeline, n *Node, paths []string, is bool, err error) {
	r.ended(n)
	rest := paths[1:]
	switch {
	case n.isGone():
	case err != nil && !errors.Is(err, zk.ErrNoNode):
		r.findFailed(flight, n, err)
	case is:
		r.name(n, paths[0])
		r.want(n, look)
	case len(rest) == 0:
		n.uncertain = false
		r.want(n, look)
	default:
		r.begin(n)
		r.sendLater(func() { r.identify(flight, n, slices.Clone(rest)) })
	}
}

func (r *Reconciler) findFailed(flight pipeline, n *Node, err error) {
	switch {
	case isTransient(err):
		r.want(n, look)
		if flight == r.flight {
			r.interruptedBy(err)
		}
	case waitqueue.IsPassing(err):
		r.pause(n)
	default:
		r.refuse(n, err)
	}
}

// name gives a sequential node the path that the server has chosen.
func (r *Reconciler) name(n *Node, path string) {
	n.local = path
	if ns := n.spec.Client.Namespace(); ns != "" {
		n.local = zkpath.StripNamespace(ns, path)
	}
	n.path, n.named, n.uncertain, n.sent, n.claimed = path, true, false, nil, true
	r.byPath[path] = n
}
