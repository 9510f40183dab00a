package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/zkpath"
)

// apply handles the answer to a read.
func (e *engine) apply(flight context.Context, r read, res callbacks.ReadResult) {
	r.epoch.pending--
	if r.n.gone {
		return
	}
	if e.oneShot && flight == e.flight && r.w != chroot && (res.Err == nil || r.w == check) {
		e.watching = true
	}
	if r.w.isOfNode() {
		r.n.underWay--
		r.n.suspected = max(r.n.suspected, 1) - 1
	}
	switch {
	case r.w == chroot:
		e.applyChroot(r, res.Err)
	case r.w == list:
		e.applyList(flight, r, res)
	case errors.Is(res.Err, zk.ErrNoNode):
		e.remove(r)
	case e.waitForParent(r, res.Err):
	case r.w == check:
		e.applyCheck(r, res)
	default:
		e.applyData(r, res)
	}
}

// waitForParent postpones a read until the parent of its node is read, and reports whether it did so. There are two
// reasons:
//
//   - The parent may be deleted and, with it, the node.
//   - The node can be read and is new, and an earlier read of its parent failed. By now the parent may be readable: the
//     next request reads both, the parent first. If the parent fails again, the cache gets the node without it.
func (e *engine) waitForParent(r read, err error) bool {
	n, p := r.n, r.n.parent
	failed := p != nil && p.suspected == 0 && e.failed[p].of != 0
	switch {
	case p == nil, p.suspected == 0 && p.live, failed && (err != nil || n.live || n.again != 0 && r.request >= n.again):
		n.again = 0
		return false
	case failed && n.again == 0:
		for up := n; up != e.root && !up.parent.live; up = up.parent {
			up.again = e.requests + 1
			e.want(up.parent, data, r.epoch)
		}
	case p.underWay == 0 && !failed:
		e.want(p, data, r.epoch)
	}
	e.want(n, r.w, r.epoch)
	return true
}

// applyData makes the answer to a read of the data the state of its node.
func (e *engine) applyData(r read, res callbacks.ReadResult) {
	n, stat := r.n, &res.Stat
	if stat.Czxid != n.czxid && stat.Czxid != 0 && n.czxid != 0 { // an error may have no Stat
		e.drop(n)
	}
	if res.Err != nil {
		e.fail(n, data, res.Err)
		if e.hasChildren(n) && !errors.Is(res.Err, zk.ErrNoAuth) {
			e.want(n, list, r.epoch)
		}
		return
	}
	e.succeed(n, data|check)
	e.meanSize = (7*e.meanSize + int(stat.DataLength)) / 8
	changed := n.mzxid != stat.Mzxid
	n.czxid, n.mzxid, n.size = stat.Czxid, stat.Mzxid, stat.DataLength
	e.put(r, &ChildData{Path: n.path, Stat: *stat, Data: res.Data}, changed)
}

// applyCheck reads the data of a node if its Stat shows that the cached data is not current.
func (e *engine) applyCheck(r read, res callbacks.ReadResult) {
	n, stat := r.n, &res.Stat
	cached := e.settings.storage.Get(n.path) // a storage of the program may have dropped it
	switch {
	case res.Err != nil:
		e.fail(n, check, res.Err)
	case !n.live || n.czxid != stat.Czxid || cached == nil || !isOneWrite(&cached.Stat, stat):
		e.suspect(n, data, r.epoch)
	default:
		e.put(r, &ChildData{Path: n.path, Stat: *stat, Data: cached.Data}, false)
	}
}

// isOneWrite reports whether the last write of a node is the same in two reads of it. A server that was restored from a
// backup gives its transaction ids a second time, at another time.
func isOneWrite(a, b *zk.Stat) bool {
	return a.Mzxid == b.Mzxid && a.Mtime == b.Mtime && a.Version == b.Version
}

// put stores a node, sends an event if it was created or changed, and makes its children wanted if they may differ from
// the known ones.
func (e *engine) put(r read, now *ChildData, changed bool) {
	n := r.n
	e.succeed(n, chroot)
	old := e.settings.storage.Put(now)
	switch {
	case !n.live:
		n.live = true
		e.entries++
		e.obs.Created(e.ctx)
		e.notifyChange(Event{Type: NodeCreated, New: now})
	case changed, old != nil && !isOneWrite(&old.Stat, &now.Stat):
		e.obs.Changed(e.ctx)
		if old == nil { // a storage of the program has dropped it
			old = &ChildData{Path: n.path}
		}
		e.notifyChange(Event{Type: NodeChanged, Old: old, New: now})
	}
	n.listed = n.listed && n.pzxid == now.Stat.Pzxid
	n.pzxid, n.children = now.Stat.Pzxid, now.Stat.NumChildren
	switch {
	case !e.hasChildren(n):
	case n.listed:
		e.succeed(n, list)
	case n.children > 0 || e.oneShot:
		e.want(n, list, r.epoch)
	default:
		e.setChildren(r, nil)
	}
}

// applyChroot handles the answer to a look for the chroot. Without it the root counts as one that could not be read, so
// that it is read again after a pause.
func (e *engine) applyChroot(r read, err error) {
	if errors.Is(err, zk.ErrNoNode) && !r.n.live {
		e.fail(r.n, chroot, err)
	} else {
		e.succeed(r.n, chroot)
	}
}

// applyList handles the list of the children of a node. The list of an earlier flight has set no one-shot watch if the
// servers were asked for a recursive one in it, so the node is listed again.
func (e *engine) applyList(flight context.Context, r read, res callbacks.ReadResult) {
	switch n := r.n; {
	case errors.Is(res.Err, zk.ErrNoNode):
		e.want(n, data, r.epoch)
	case res.Err != nil:
		e.fail(n, list, res.Err)
	default:
		if res.Stat.Czxid != 0 {
			n.pzxid = res.Stat.Pzxid
		}
		e.setChildren(r, res.Children)
		n.listed = !e.oneShot || flight == e.flight
	}
}

// setChildren makes two sets of children wanted: listed children that are not in the cache, and known children that are
// not in the list.
func (e *engine) setChildren(r read, names []string) {
	listed := make(map[string]struct{}, len(names))
	for _, name := range names {
		path := zkpath.Join(r.n.path, name)
		listed[path] = struct{}{}
		if kid := e.node(path); kid != nil && !kid.live {
			e.want(kid, data, r.epoch)
		}
	}
	for _, kid := range r.n.kids() {
		if _, ok := listed[kid.path]; !ok {
			e.want(kid, data, r.epoch)
		}
	}
	r.n.listed = true
	e.succeed(r.n, list)
}

// remove removes a node that does not exist, and everything below it, from the cache.
func (e *engine) remove(r read) {
	n := r.n
	e.drop(n)
	e.succeed(n, data|check|list)
	switch {
	case n != e.root && n.wanted == 0 && n.underWay == 0:
		e.forget(n)
	case n == e.root && e.oneShot && r.w == data:
		e.want(n, check, r.epoch) // sets a watch for its creation
	case n == e.root && hook.HasChroot(e.client):
		e.want(n, chroot, r.epoch)
	}
}

// drop removes n and the nodes below it from the cache, children before parents.
func (e *engine) drop(n *node) {
	for len(n.kids()) > 0 {
		kid := n.kids()[len(n.kids())-1]
		e.drop(kid)
		e.forget(kid)
	}
	n.czxid, n.listed = 0, false
	if n.live {
		n.live = false
		e.entries--
		old := e.settings.storage.Remove(n.path)
		if old == nil { // a storage of the program has dropped it
			old = &ChildData{Path: n.path}
		}
		e.obs.Deleted(e.ctx)
		e.notifyChange(Event{Type: NodeDeleted, Old: old})
	}
}

// succeed clears the error of n, unless it is also of reads other than these.
func (e *engine) succeed(n *node, w want) {
	f := e.failed[n]
	if f.of &^= w; f.of != 0 {
		e.failed[n] = f
	} else {
		delete(e.failed, n)
	}
}

// fail records the error of the read w of n and schedules a retry. The pauses grow until another node fails.
func (e *engine) fail(n *node, w want, err error) {
	f := e.failed[n]
	if f.of == 0 {
		e.retries = 0
	}
	e.failed[n] = failure{f.of | w, err}
	e.wake(pauseAfter(e.retries))
}

// pauseAfter returns the pause before the next retry, with jitter. retries counts the retries before.
func pauseAfter(retries int) time.Duration {
	pause := min(firstPause<<min(retries, 16), lastPause)
	return pause + rand.N(pause)/2
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
)
