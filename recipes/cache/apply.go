package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/zkpath"
)

// apply handles the answer to a read.
func (e *engine) apply(flight context.Context, r read, res callbacks.ReadResult) {
	n := r.n
	if n.gone {
		return
	}
	if e.oneShot && flight == e.flight && (res.Err == nil || r.w == exists) {
		e.watching = true
	}
	switch r.w {
	case data:
		e.applyData(n, res)
	case list:
		e.applyList(n, res)
	case exists:
		e.applyExists(n, res)
	case check:
		e.applyCheck(n, res)
	}
	e.finishRead(n, r.w)
}

// applyData makes the answer to a read of the data the state of n.
func (e *engine) applyData(n *node, res callbacks.ReadResult) {
	n.suspected, n.suspectedAgain = n.suspectedAgain, false
	if errors.Is(res.Err, zk.ErrNoNode) {
		e.remove(n)
		return
	}
	if e.waitForParent(n, data) {
		return
	}
	stat := &res.Stat
	known := stat.Czxid != 0 // false if the server returned no Stat
	if known && n.czxid != 0 && n.czxid != stat.Czxid {
		e.removeBelow(n)
		e.removeOnly(n)
	}
	if res.Err != nil {
		e.fail(n, data, res.Err)
		if e.hasChildren(n) && !errors.Is(res.Err, zk.ErrNoAuth) {
			e.want(n, list, n.generation)
		}
		return
	}
	e.succeed(n, data|check|exists)
	e.meanSize = (7*e.meanSize + len(res.Data)) / 8
	changed := n.mzxid != stat.Mzxid
	n.czxid, n.mzxid, n.size = stat.Czxid, stat.Mzxid, stat.DataLength
	n.updateChildStat(stat)
	e.put(n, &ChildData{Path: n.path, Stat: *stat, Data: res.Data}, changed)
	e.wantChildren(n)
}

// waitForParent postpones the read w of n until its parent is read, if the parent may be deleted and, with it, n. It
// reports whether it did so.
func (e *engine) waitForParent(n *node, w want) bool {
	p := n.parent
	if p == nil || !p.suspected && e.isPresent(p) {
		return false
	}
	if !p.isPending() {
		e.want(p, data, n.generation)
	}
	e.want(n, w, n.generation)
	return true
}

// applyCheck reads the data of n if its Stat shows that the cached data is not current.
func (e *engine) applyCheck(n *node, res callbacks.ReadResult) {
	n.suspected, n.suspectedAgain = n.suspectedAgain, false
	stat, cached := &res.Stat, e.settings.storage.Get(n.path) // a storage of the program may have dropped it
	switch {
	case res.Err != nil:
		e.fail(n, check, res.Err)
	case stat.Czxid == 0:
		e.remove(n)
	case e.waitForParent(n, check):
	case !n.live || n.czxid != stat.Czxid || n.mzxid != stat.Mzxid || cached == nil:
		e.suspect(n, data)
	default:
		n.updateChildStat(stat)
		e.put(n, &ChildData{Path: n.path, Stat: *stat, Data: cached.Data}, false)
		e.wantChildren(n)
	}
}

// updateChildStat copies the child fields of stat to n.
func (n *node) updateChildStat(stat *zk.Stat) {
	n.listed = n.listed && n.pzxid == stat.Pzxid
	n.pzxid, n.children = stat.Pzxid, stat.NumChildren
}

// wantChildren makes the children of n wanted if they may differ from the known ones.
func (e *engine) wantChildren(n *node) {
	switch {
	case !e.hasChildren(n):
	case n.listed:
		e.succeed(n, list)
	case n.children > 0 || e.oneShot:
		e.want(n, list, n.generation)
	default:
		for _, kid := range n.kids() {
			e.want(kid, data, n.generation)
		}
		n.listed = true
		e.succeed(n, list)
	}
}

// put stores n and sends an event if it was created or changed.
func (e *engine) put(n *node, now *ChildData, changed bool) {
	old := e.settings.storage.Put(now)
	switch {
	case !n.live:
		n.live = true
		e.notifyEvent(Event{Type: NodeCreated, New: now})
	case changed:
		e.notifyEvent(Event{Type: NodeChanged, Old: old, New: now})
	}
}

// applyList makes two sets of children wanted: listed children that are not in the cache, and known children that are
// not in the list.
func (e *engine) applyList(n *node, res callbacks.ReadResult) {
	switch {
	case errors.Is(res.Err, zk.ErrNoNode):
		e.want(n, data, n.generation)
		return
	case res.Err != nil:
		e.fail(n, list, res.Err)
		return
	}
	e.succeed(n, list)
	listed := make(map[string]struct{}, len(res.Children))
	for _, name := range res.Children {
		path := zkpath.Join(n.path, name)
		listed[path] = struct{}{}
		if kid := e.nodes[path]; kid != nil && kid.live {
			continue
		}
		if kid := e.node(path); kid != nil {
			e.want(kid, data, n.generation)
		}
	}
	for _, kid := range n.kids() {
		if _, ok := listed[kid.path]; !ok {
			e.want(kid, data, n.generation)
		}
	}
	n.listed = true
	if res.Stat.Czxid != 0 {
		n.pzxid = res.Stat.Pzxid
	}
}

// applyExists reads the root if it exists now. If it does not, the request has set a watch for its creation.
func (e *engine) applyExists(n *node, res callbacks.ReadResult) {
	switch {
	case res.Err != nil:
		e.fail(n, exists, res.Err)
	case res.Stat.Czxid != 0:
		e.want(n, data, n.generation)
	default:
		e.succeed(n, exists)
	}
}

// remove removes a node that does not exist, and everything below it, from the cache.
func (e *engine) remove(n *node) {
	e.removeBelow(n)
	e.removeOnly(n)
	e.succeed(n, data|check|list)
	switch {
	case n == e.root && e.oneShot:
		e.want(n, exists, n.generation)
	case n != e.root && n.again == 0:
		e.forget(n)
	}
}

// removeBelow removes the nodes below n, children before parents.
func (e *engine) removeBelow(n *node) {
	for len(n.kids()) > 0 {
		kid := n.kids()[len(n.kids())-1]
		e.removeBelow(kid)
		e.removeOnly(kid)
		e.forget(kid)
	}
}

// removeOnly removes n from the cache, without the nodes below it.
func (e *engine) removeOnly(n *node) {
	n.czxid, n.mzxid, n.pzxid, n.listed = 0, 0, 0, false
	n.size, n.children = 0, 0
	if n.live {
		n.live = false
		old := e.settings.storage.Remove(n.path)
		if old == nil { // a storage of the program has dropped it
			old = &ChildData{Path: n.path}
		}
		e.notifyEvent(Event{Type: NodeDeleted, Old: old})
	}
}

// succeed clears the error of n, unless it is also of reads other than these.
func (e *engine) succeed(n *node, w want) {
	if f := e.failed[n]; f != nil {
		if f.of &^= w; f.of == 0 {
			delete(e.failed, n)
		}
	}
}

// fail records the error of the read w of n and schedules a retry.
func (e *engine) fail(n *node, w want, err error) {
	f := e.failed[n]
	if f == nil {
		f = new(failure)
		e.failed[n] = f
	}
	pause := pauseAfter(f.attempts)
	f.of, f.err, f.attempts, f.pause, f.due = f.of|w, err, f.attempts+1, pause, time.Now().Add(pause)
	e.wake(pause)
}

// pauseAfter returns the pause before the next retry, with jitter. failures counts the failures before the last one.
func pauseAfter(failures int) time.Duration {
	pause := min(firstPause<<min(failures, 16), lastPause)
	return pause + rand.N(pause)/2
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
)
