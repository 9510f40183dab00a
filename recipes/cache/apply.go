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

// apply takes the answer to a read.
func (e *engine) apply(flight context.Context, r read, res callbacks.ReadResult) {
	n := r.n
	if n.gone {
		return
	}
	if e.oneShot && flight == e.flight && (res.Err == nil || r.w == birth) {
		e.watching = true
	}
	switch r.w {
	case data:
		e.applyData(n, res)
	case list:
		e.applyList(n, res)
	case birth:
		e.applyBirth(n, res)
	case check:
		e.applyCheck(n, res)
	}
	e.landed(n, r.w)
}

// applyData makes the answer to a read of data the state of n.
func (e *engine) applyData(n *node, res callbacks.ReadResult) {
	n.doubt, n.doubtAgain = n.doubtAgain, false
	if errors.Is(res.Err, zk.ErrNoNode) {
		e.remove(n)
		return
	}
	if e.awaitsParent(n, data) {
		return
	}
	stat := &res.Stat
	known := stat.Czxid != 0 // else it could not be read at all
	if known && n.czxid != 0 && n.czxid != stat.Czxid {
		e.removeBelow(n)
		e.removed(n)
	}
	if res.Err != nil {
		e.fail(n, res.Err)
		if e.hasChildren(n) && !errors.Is(res.Err, zk.ErrNoAuth) {
			e.want(n, list, n.generation)
		}
		return
	}
	delete(e.failed, n)
	e.meanSize = (7*e.meanSize + len(res.Data)) / 8
	changed := n.mzxid != stat.Mzxid
	n.czxid, n.mzxid, n.size = stat.Czxid, stat.Mzxid, stat.DataLength
	n.saw(stat)
	e.put(n, &ChildData{Path: n.path, Stat: *stat, Data: res.Data}, changed)
	e.lookBelow(n)
}

// awaitsParent reads n again, behind the node above it, if that may be gone, and what is below it.
func (e *engine) awaitsParent(n *node, w want) bool {
	p := n.parent
	if p == nil || !p.doubt && e.isPresent(p) {
		return false
	}
	if !p.isPending() {
		e.want(p, data, n.generation)
	}
	e.want(n, w, n.generation)
	return true
}

// applyCheck reads the data of n if it is not that which is known.
func (e *engine) applyCheck(n *node, res callbacks.ReadResult) {
	n.doubt, n.doubtAgain = n.doubtAgain, false
	stat := &res.Stat
	switch {
	case res.Err != nil:
		e.fail(n, res.Err)
	case stat.Czxid == 0:
		e.remove(n)
	case e.awaitsParent(n, check):
	case !n.live || n.czxid != stat.Czxid || n.mzxid != stat.Mzxid:
		e.suspect(n, data)
	default:
		n.saw(stat)
		e.put(n, &ChildData{Path: n.path, Stat: *stat, Data: e.settings.storage.Get(n.path).Data}, false)
		e.lookBelow(n)
	}
}

// saw takes what a Stat says of the children of n.
func (n *node) saw(stat *zk.Stat) {
	n.listed = n.listed && n.pzxid == stat.Pzxid
	n.pzxid, n.children = stat.Pzxid, stat.NumChildren
}

// lookBelow wants the children of n if they may be others than those that are known.
func (e *engine) lookBelow(n *node) {
	switch {
	case !e.hasChildren(n) || n.listed:
	case n.children > 0 || e.oneShot:
		e.want(n, list, n.generation)
	default:
		for _, kid := range n.kids() {
			e.want(kid, data, n.generation)
		}
		n.listed = true
	}
}

// put stores n and tells what has become of it.
func (e *engine) put(n *node, now *ChildData, changed bool) {
	old := e.settings.storage.Put(now)
	switch {
	case !n.live:
		n.live = true
		e.tellEvent(Event{Type: NodeCreated, New: now})
	case changed:
		e.tellEvent(Event{Type: NodeChanged, Old: old, New: now})
	}
}

// applyList has the children read that are not known, and those that are not in the list.
func (e *engine) applyList(n *node, res callbacks.ReadResult) {
	switch {
	case errors.Is(res.Err, zk.ErrNoNode):
		e.want(n, data, n.generation)
		return
	case res.Err != nil:
		e.fail(n, res.Err)
		return
	}
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

// applyBirth reads the root if it is there after all. If it is not, a watch of its creation is set.
func (e *engine) applyBirth(n *node, res callbacks.ReadResult) {
	switch {
	case res.Err != nil:
		e.fail(n, res.Err)
	case res.Stat.Czxid != 0:
		e.want(n, data, n.generation)
	}
}

// remove takes a node that does not exist, and all below it, out of the cache.
func (e *engine) remove(n *node) {
	e.removeBelow(n)
	e.removed(n)
	delete(e.failed, n)
	switch {
	case n == e.root && e.oneShot:
		e.want(n, birth, n.generation)
	case n != e.root && n.again == 0:
		e.forget(n)
	}
}

// removeBelow removes the nodes below n, those at the bottom first.
func (e *engine) removeBelow(n *node) {
	for len(n.kids()) > 0 {
		kid := n.kids()[len(n.kids())-1]
		e.removeBelow(kid)
		e.removed(kid)
		e.forget(kid)
	}
}

// removed takes n itself out of the cache.
func (e *engine) removed(n *node) {
	n.czxid, n.mzxid, n.pzxid, n.listed = 0, 0, 0, false
	n.size, n.children = 0, 0
	if n.live {
		n.live = false
		e.tellEvent(Event{Type: NodeDeleted, Old: e.settings.storage.Remove(n.path)})
	}
}

// fail notes why n could not be read, and has it tried again after a pause.
func (e *engine) fail(n *node, err error) {
	f := e.failed[n]
	if f == nil {
		f = new(failure)
		e.failed[n] = f
	}
	pause := pauseAfter(f.attempts)
	f.err, f.attempts, f.due = err, f.attempts+1, time.Now().Add(pause)
	e.wake(pause)
}

// pauseAfter returns the pause after so many failures and one more.
func pauseAfter(failures int) time.Duration {
	pause := min(firstPause<<min(failures, 16), lastPause)
	return pause + rand.N(pause)/2
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
)
