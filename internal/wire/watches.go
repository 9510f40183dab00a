package wire

import (
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// Watcher gets the events of its watches, and the states of the session. Watchers are compared with ==: one that is
// registered twice for a watch gets each event once. Notify runs on the goroutine that reads the connection: it must
// not block.
type Watcher interface {
	Notify(ev zk.Event)
}

// WatcherType selects watches for removal, with the values of the protocol.
type WatcherType = int32

// The watcher types. Data covers the watches of exists too.
const (
	WatchChildren WatcherType = 1
	WatchData     WatcherType = 2
	WatchAny      WatcherType = 3
)

// Modes of addWatch, with the values of the protocol.
const (
	Persistent          int32 = 0
	PersistentRecursive int32 = 1
)

// kind is a table of watches, as the Java client has them.
type kind int

const (
	kindData kind = iota
	kindExist
	kindChild
	kindPersistent
	kindRecursive
	kinds
)

// watches is the registry of a session: the watchers of each event. Paths are those of the server, chroot included.
// Conn.mu guards it.
type watches struct {
	sets    [kinds]map[string]*watcherSet
	n       int // number of watches in sets
	traffic traffic
}

func (ws *watches) add(k kind, path string, w Watcher) {
	set := ws.sets[k][path]
	if set == nil {
		if ws.sets[k] == nil {
			ws.sets[k] = make(map[string]*watcherSet)
		}
		set = new(watcherSet)
		ws.sets[k][path] = set
	}
	if !set.add(w) {
		return
	}
	ws.n++
	if ws.traffic.isLeaving(path, w) {
		set.leaving++
	}
}

// answered adds or removes the watcher of an answered request. It returns the watchers to notify of their removal.
func (ws *watches) answered(r *Request, path string) (removed []Watcher) {
	switch {
	case r.Op == jute.OpRemoveWatches:
		if r.Err == nil {
			return ws.remove(r.Flags, path, r.Watcher)
		}
	case r.Watcher != nil:
		ws.granted(r, path)
	}
	return nil
}

// granted registers r's watcher if the server has set the watch.
func (ws *watches) granted(r *Request, path string) {
	switch {
	case r.Op == jute.OpExists && r.Err == zk.ErrNoNode:
		ws.add(kindExist, path, r.Watcher)
	case r.Err != nil:
	case r.Op == jute.OpAddWatch && r.Flags == Persistent:
		ws.add(kindPersistent, path, r.Watcher)
	case r.Op == jute.OpAddWatch:
		ws.add(kindRecursive, path, r.Watcher)
	case r.Op == jute.OpGetChildren || r.Op == jute.OpGetChildren2:
		ws.add(kindChild, path, r.Watcher)
	case r.Op == jute.OpExists || r.Op == jute.OpGetData:
		ws.add(kindData, path, r.Watcher)
	}
}

// fired returns the watchers that get an event, each once, and removes the one-shot ones.
func (ws *watches) fired(ev zk.EventType, path string) []Watcher {
	var out watcherSet
	take := func(k kind, path string) {
		for w := range ws.sets[k][path].all() {
			out.add(w)
		}
	}
	takeOnce := func(k kind) {
		take(k, path)
		ws.drop(k, path)
	}
	switch ev {
	case zk.EventNodeCreated, zk.EventNodeDataChanged:
		takeOnce(kindData)
		takeOnce(kindExist)
	case zk.EventNodeDeleted:
		takeOnce(kindData)
		takeOnce(kindExist)
		takeOnce(kindChild)
	case zk.EventNodeChildrenChanged:
		takeOnce(kindChild)
	}
	take(kindPersistent, path)
	if ev == zk.EventNodeChildrenChanged || !strings.HasPrefix(path, "/") {
		return out.list
	}
	recursive := ws.sets[kindRecursive]
	if strings.Count(path, "/") > len(recursive) { // a hostile path has a million ancestors
		for at := range recursive {
			if at == "/" || strings.HasPrefix(path, at) && (len(path) == len(at) || path[len(at)] == '/') {
				take(kindRecursive, at)
			}
		}
		return out.list
	}
	for at := path; ; at = at[:max(strings.LastIndexByte(at, '/'), 1)] {
		take(kindRecursive, at)
		if at == "/" {
			break
		}
	}
	return out.list
}

// all returns every watcher once: session events go to all of them.
func (ws *watches) all() []Watcher {
	var out watcherSet
	for k := range ws.sets {
		for _, set := range ws.sets[k] {
			for w := range set.all() {
				out.add(w)
			}
		}
	}
	return out.list
}

// takePersistent removes the persistent watches and returns their watchers, each once for a path.
func (ws *watches) takePersistent() map[string]*watcherSet {
	taken := make(map[string]*watcherSet)
	for _, k := range []kind{kindPersistent, kindRecursive} {
		for path, set := range ws.sets[k] {
			if taken[path] == nil {
				taken[path] = new(watcherSet)
			}
			for w := range set.all() {
				taken[path].add(w)
			}
			ws.drop(k, path)
		}
	}
	return taken
}

// drop removes all watches of a path.
func (ws *watches) drop(k kind, path string) {
	if set := ws.sets[k][path]; set != nil {
		ws.n -= set.n
		delete(ws.sets[k], path)
	}
}

// selected returns the tables of a watcher type.
func selected(t WatcherType) []kind {
	switch t {
	case WatchChildren:
		return []kind{kindChild}
	case WatchData:
		return []kind{kindData, kindExist}
	}
	return []kind{kindData, kindExist, kindChild, kindPersistent, kindRecursive}
}

// has reports whether w, or any watcher if w is nil, watches path.
func (ws *watches) has(t WatcherType, path string, w Watcher) bool {
	for _, k := range selected(t) {
		if set := ws.sets[k][path]; set != nil && (w == nil || set.has(w)) {
			return true
		}
	}
	return false
}

// remove removes w, or all watchers if w is nil. It returns the removed watchers only if w is nil, each once: they did
// not request the removal.
func (ws *watches) remove(t WatcherType, path string, w Watcher) []Watcher {
	var removed watcherSet
	for _, k := range selected(t) {
		set := ws.sets[k][path]
		if set == nil {
			continue
		}
		if w == nil {
			for other := range set.all() {
				removed.add(other)
			}
		}
		if w != nil && set.remove(w) {
			ws.n--
			if ws.traffic.isLeaving(path, w) {
				set.leaving--
			}
		}
		if w == nil || set.n == 0 {
			ws.drop(k, path)
		}
	}
	return removed.list
}

// removal returns the opcode and the watcher type that remove w's watches, or all if w is nil, from the server and
// leave the others. The server has two tables, of data and of children, with one watch a session in each; persistent
// and recursive ones are in both. A watch may only be removed with its last watcher; watchers that a removal on the
// wire removes do not count.
func (ws *watches) removal(t WatcherType, path string, w Watcher) (jute.Op, WatcherType) {
	needed := func(table WatcherType) bool {
		for k := range kinds {
			if table == WatchData && k == kindChild || table == WatchChildren && (k == kindData || k == kindExist) {
				continue
			}
			set := ws.sets[k][path]
			if set == nil {
				continue
			}
			stay := set.n - set.leaving
			switch goes := slices.Contains(selected(t), k); {
			case goes && w == nil:
				stay = 0
			case goes && set.has(w) && !ws.traffic.isLeaving(path, w):
				stay--
			}
			if stay > 0 {
				return true
			}
		}
		return false
	}
	switch {
	case !needed(t):
		return jute.OpRemoveWatches, t
	case t == WatchAny && ws.has(WatchData, path, w) && !needed(WatchData):
		return jute.OpRemoveWatches, WatchData
	case t == WatchAny && ws.has(WatchChildren, path, w) && !needed(WatchChildren):
		return jute.OpRemoveWatches, WatchChildren
	}
	return jute.OpCheckWatches, t
}

// isCovered reports whether a persistent watch that stays on the same node gets the events of r's watch. A server
// before 3.9 keeps one mode for each node of a session: a one-shot watch would make the persistent one end with the
// next event, and take the events below the node from a recursive one (ZOOKEEPER-4466). So a removal of another watcher
// does not matter.
func (ws *watches) isCovered(r *Request, path string) bool {
	by := ws.sets[kindPersistent][path].stays()
	switch r.Op {
	case jute.OpExists, jute.OpGetData:
		by = by || ws.sets[kindRecursive][path].stays()
	case jute.OpGetChildren, jute.OpGetChildren2:
	default:
		return false
	}
	return by && !ws.traffic.isLeaving(path, nil)
}

// isRecursive reports whether a recursive watch on the node stays, or is being set. A persistent watch there is set as
// a recursive one, which has its events: a server before 3.9 would keep the persistent one alone.
func (ws *watches) isRecursive(path string) bool {
	return ws.traffic.paths[path].addingRecursive > 0 ||
		ws.sets[kindRecursive][path].stays() && !ws.traffic.isLeaving(path, nil)
}

// awaitsCover reports whether the answer to an addWatch on the wire decides if r is covered. Until then r must wait:
// with its watch it would replace the persistent one, and without it r would watch nothing if the addWatch is refused.
func (ws *watches) awaitsCover(r *Request, c *Conn) bool {
	if len(ws.traffic.paths) == 0 || !setsWatch(r) {
		return false
	}
	p := ws.traffic.paths[r.serverPath(c)]
	switch r.Op {
	case jute.OpExists, jute.OpGetData:
		return p.addingPersistent+p.addingRecursive > 0
	case jute.OpGetChildren, jute.OpGetChildren2:
		return p.addingPersistent > 0
	}
	return false
}

// maxSetWatches bounds a frame of setWatches; a server may refuse large ones.
const maxSetWatches = 128 << 10

// frames returns the bodies of the requests that set the watches again on a new connection, and their opcode: the old
// one without persistent watches, because servers before 3.6 have no other. Watches on the children of a node with a
// recursive watch come last: a server before 3.9 uses the mode that was set last (ZOOKEEPER-4466).
func (ws *watches) frames(zxid int64) (op jute.Op, bodies [][]byte) {
	op = jute.OpSetWatches
	encode := jute.AppendSetWatches
	if len(ws.sets[kindPersistent])+len(ws.sets[kindRecursive]) > 0 {
		op, encode = jute.OpSetWatches2, jute.AppendSetWatches2
	}
	var lists [kinds][]string
	size := 0
	flush := func() {
		bodies = append(bodies, encode(nil, &jute.SetWatches{
			RelativeZxid: zxid, Data: lists[kindData], Exist: lists[kindExist], Child: lists[kindChild],
			Persistent: lists[kindPersistent], Recursive: lists[kindRecursive],
		}))
		lists, size = [kinds][]string{}, 0
	}
	add := func(k kind, path string) {
		if size > 0 && size+4+len(path) > maxSetWatches {
			flush()
		}
		lists[k] = append(lists[k], path)
		size += 4 + len(path)
	}
	late := func(k kind, path string) bool { return k == kindChild && ws.sets[kindRecursive][path] != nil }
	for _, pass := range []bool{false, true} {
		for k := range kinds {
			for path := range ws.sets[k] {
				if late(k, path) == pass {
					add(k, path)
				}
			}
		}
		if size > 0 {
			flush()
		}
	}
	return op, bodies
}
