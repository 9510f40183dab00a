package wire

import (
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// traffic counts the requests in flight that set or remove watches. A watch that is being set is not registered yet,
// and one that is being removed still is. The removal of another watch of the same node has to consider both.
type traffic struct {
	paths    map[string]pathTraffic
	watchers map[watcherAt]watcherTraffic
}

// pathTraffic counts the watch requests on the wire for a path.
type pathTraffic struct {
	requests int // number of requests with a watcher
	setting  int // number of requests that set a watch which no later request removes
	// Numbers of addWatch requests, by the table of their watch.
	addingPersistent, addingRecursive int
	// orphaned means that a watch of the server was not removed because a request that sets it for another watcher is on
	// the wire. If the server refuses that request, the watch has no watcher.
	orphaned bool
}

type watcherAt struct {
	path string
	w    Watcher
}

// watcherTraffic counts the requests on the wire for a watcher of a path.
type watcherTraffic struct {
	submitted  int    // number of requests that set a watch, on the wire or waiting
	setting    int    // number of those on the wire that no later request undoes
	adding     int    // number of addWatch requests on the wire
	leaving    int    // number of removals of all its watches on the wire
	generation uint32 // total number of removals of all its watches
}

func setsWatch(r *Request) bool { return r.Watcher != nil && r.Op != jute.OpRemoveWatches }

// concernsWatches reports whether traffic counts r.
func concernsWatches(r *Request) bool { return r.Watcher != nil || r.Op == jute.OpRemoveWatches }

// countAdding counts r, if it is an addWatch, among those on the wire.
func (p *pathTraffic) countAdding(r *Request, n int) {
	switch {
	case r.Op != jute.OpAddWatch:
	case r.Flags == Persistent:
		p.addingPersistent += n
	default:
		p.addingRecursive += n
	}
}

func (t *traffic) updatePath(path string, change func(p *pathTraffic)) {
	p := t.paths[path]
	change(&p)
	if p == (pathTraffic{}) {
		delete(t.paths, path)
		return
	}
	if t.paths == nil {
		t.paths = make(map[string]pathTraffic)
	}
	t.paths[path] = p
}

func (t *traffic) updateWatcher(path string, w Watcher, change func(w *watcherTraffic)) (after watcherTraffic) {
	at := watcherAt{path, w}
	after = t.watchers[at]
	change(&after)
	if after == (watcherTraffic{generation: after.generation}) {
		delete(t.watchers, at)
		return after
	}
	if t.watchers == nil {
		t.watchers = make(map[watcherAt]watcherTraffic)
	}
	t.watchers[at] = after
	return after
}

// isLeaving reports whether a removal of all watches of w on path is on the wire, or of all watchers if w is nil.
func (t *traffic) isLeaving(path string, w Watcher) bool {
	return t.watchers[watcherAt{path, w}].leaving > 0
}

// isSetting reports whether a request that sets a watch of w on path is under way.
func (t *traffic) isSetting(path string, w Watcher) bool {
	return t.watchers[watcherAt{path, w}].submitted > 0
}

// staysFor reports whether a watch on path is being set that the removal r does not remove.
func (t *traffic) staysFor(r *Request, path string) bool {
	mine := t.watchers[watcherAt{path, r.Watcher}]
	return t.paths[path].setting-mine.setting > 0 || r.Flags != WatchAny && mine.adding > 0
}

// submitted counts r as in flight.
func (ws *watches) submitted(r *Request, path string) {
	if setsWatch(r) {
		ws.traffic.updateWatcher(path, r.Watcher, func(w *watcherTraffic) { w.submitted++ })
	}
}

// withdrawn is the inverse of submitted.
func (ws *watches) withdrawn(r *Request, path string) {
	if setsWatch(r) {
		ws.traffic.updateWatcher(path, r.Watcher, func(w *watcherTraffic) { w.submitted-- })
	}
}

// sent counts r as on the wire.
func (ws *watches) sent(r *Request, path string) {
	t := &ws.traffic
	if setsWatch(r) {
		w := t.updateWatcher(path, r.Watcher, func(w *watcherTraffic) {
			w.setting++
			if r.Op == jute.OpAddWatch {
				w.adding++
			}
		})
		r.generation = w.generation
		t.updatePath(path, func(p *pathTraffic) { p.requests++; p.setting++; p.countAdding(r, 1) })
		return
	}
	removed := 0 // watches that are being set, and that r removes
	if r.Flags == WatchAny {
		w := t.updateWatcher(path, r.Watcher, func(w *watcherTraffic) {
			removed, w.setting = w.setting, 0
			w.generation++
			w.leaving++
		})
		if w.leaving == 1 {
			ws.markLeaving(path, r.Watcher, 1)
		}
	}
	t.updatePath(path, func(p *pathTraffic) {
		p.setting -= removed
		if r.Watcher != nil {
			p.requests++
		}
	})
}

// ended is the inverse of submitted and sent.
func (ws *watches) ended(r *Request, path string) {
	t := &ws.traffic
	if setsWatch(r) {
		stays := 0
		t.updateWatcher(path, r.Watcher, func(w *watcherTraffic) {
			w.submitted--
			if r.generation == w.generation {
				stays = 1
			}
			w.setting -= stays
			if r.Op == jute.OpAddWatch {
				w.adding--
			}
		})
		t.updatePath(path, func(p *pathTraffic) { p.requests--; p.setting -= stays; p.countAdding(r, -1) })
		return
	}
	if r.Flags == WatchAny {
		if w := t.updateWatcher(path, r.Watcher, func(w *watcherTraffic) { w.leaving-- }); w.leaving == 0 {
			ws.markLeaving(path, r.Watcher, -1)
		}
	}
	if r.Watcher != nil {
		t.updatePath(path, func(p *pathTraffic) { p.requests-- })
	}
}

// markLeaving counts w among those that leave, in each set of the path that it is in.
func (ws *watches) markLeaving(path string, w Watcher, n int) {
	for k := range kinds {
		if set := ws.sets[k][path]; set != nil && set.has(w) {
			set.leaving += n
		}
	}
}

// orphan is a watcher and a handler that do nothing, for requests of the session itself.
type orphan struct{}

func (orphan) Notify(zk.Event)   {}
func (orphan) Answered(*Request) {}

// removeOrphan removes the server's watch of path if no watcher is left for it: see pathTraffic.orphaned. Conn.mu is
// held.
func (l *link) removeOrphan(path string) {
	ws := &l.c.watches
	p := ws.traffic.paths[path]
	if !p.orphaned || p.requests > 0 || ws.has(WatchAny, path, nil) {
		return
	}
	ws.traffic.updatePath(path, func(p *pathTraffic) { p.orphaned = false })
	l.submit(&Request{
		Request:  jute.Request{Op: jute.OpRemoveWatches, Path: path, Flags: WatchAny},
		Absolute: true, Watcher: orphan{}, Handler: orphan{},
	})
}

// endRecursion sets a persistent watch again after the last recursive one on its node was removed: a server before 3.9
// has kept the recursive one alone. Conn.mu is held.
func (l *link) endRecursion(path string) {
	ws := &l.c.watches
	if ws.sets[kindRecursive][path] == nil && ws.sets[kindPersistent][path].stays() && !ws.isRecursive(path) {
		l.submit(&Request{
			Request:  jute.Request{Op: jute.OpAddWatch, Path: path, Flags: Persistent},
			Absolute: true, Handler: orphan{},
		})
	}
}
