package wire

import (
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// Watcher is told of the events of the watches that it is registered with, and of the states of the session. Its
// identity is its value: it must be comparable, and registered twice for a watch it is told once. Notify runs on
// the goroutine that reads the connection: it must not block.
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

// watches is the registry of a session: who is to be told of which event. Paths are those of the server, chroot
// included. It is guarded by Conn.mu.
type watches [kinds]map[string][]Watcher

func (ws *watches) add(k kind, path string, w Watcher) {
	if ws[k] == nil {
		ws[k] = make(map[string][]Watcher)
	}
	if !slices.Contains(ws[k][path], w) {
		ws[k][path] = append(ws[k][path], w)
	}
}

// answered registers the watcher of a request that is answered, or forgets it.
func (ws *watches) answered(r *Request, path string) {
	switch {
	case r.Op == jute.OpRemoveWatches:
		if r.Err == nil {
			ws.remove(r.Flags, path, r.Watcher)
		}
	case r.Watcher != nil:
		ws.granted(r, path)
	}
}

// granted registers r's watcher if the answer says that the server has set the watch.
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

// fired returns who is to be told of an event, each once, and removes what fires only once.
func (ws *watches) fired(ev zk.EventType, path string) (told []Watcher) {
	take := func(k kind, once bool) {
		for _, w := range ws[k][path] {
			if !slices.Contains(told, w) {
				told = append(told, w)
			}
		}
		if once {
			delete(ws[k], path)
		}
	}
	switch ev {
	case zk.EventNodeCreated, zk.EventNodeDataChanged:
		take(kindData, true)
		take(kindExist, true)
	case zk.EventNodeDeleted:
		take(kindData, true)
		take(kindExist, true)
		take(kindChild, true)
	case zk.EventNodeChildrenChanged:
		take(kindChild, true)
	}
	take(kindPersistent, false)
	if len(ws[kindRecursive]) > 0 && ev != zk.EventNodeChildrenChanged && strings.HasPrefix(path, "/") {
		for at := path; ; at = at[:max(strings.LastIndexByte(at, '/'), 1)] {
			for _, w := range ws[kindRecursive][at] {
				if !slices.Contains(told, w) {
					told = append(told, w)
				}
			}
			if at == "/" {
				break
			}
		}
	}
	return told
}

// all returns every watcher once: session events go to all of them.
func (ws *watches) all() (told []Watcher) {
	seen := make(map[Watcher]struct{})
	for k := range ws {
		for _, list := range ws[k] {
			for _, w := range list {
				if _, ok := seen[w]; !ok {
					seen[w] = struct{}{}
					told = append(told, w)
				}
			}
		}
	}
	return told
}

// selected returns the tables that a watcher type stands for.
func selected(t WatcherType) []kind {
	switch t {
	case WatchChildren:
		return []kind{kindChild}
	case WatchData:
		return []kind{kindData, kindExist}
	}
	return []kind{kindData, kindExist, kindChild, kindPersistent, kindRecursive}
}

// has reports whether w, or anybody if w is nil, watches path.
func (ws *watches) has(t WatcherType, path string, w Watcher) bool {
	for _, k := range selected(t) {
		if list := ws[k][path]; len(list) > 0 && (w == nil || slices.Contains(list, w)) {
			return true
		}
	}
	return false
}

// remove forgets w, or everybody if w is nil.
func (ws *watches) remove(t WatcherType, path string, w Watcher) {
	for _, k := range selected(t) {
		list := ws[k][path]
		if i := slices.Index(list, w); w != nil && i >= 0 {
			list = slices.Delete(slices.Clone(list), i, i+1)
		} else if w != nil {
			continue
		} else {
			list = nil
		}
		if len(list) == 0 {
			delete(ws[k], path)
		} else {
			ws[k][path] = list
		}
	}
}

// removal says how to take w's watches, or everybody's if w is nil, off the server without taking those that stay:
// the opcode and the watcher type to send. The server has two tables, of data and of children, with one watch a session
// in each; persistent and recursive ones are in both. A watch may only go with its last watcher; leaving says who is on
// the way out already.
func (ws *watches) removal(t WatcherType, path string, w Watcher, leaving func(Watcher) bool) (jute.Op, WatcherType) {
	needed := func(table WatcherType) bool {
		for k := range kinds {
			if table == WatchData && k == kindChild || table == WatchChildren && (k == kindData || k == kindExist) {
				continue
			}
			for _, o := range ws[k][path] {
				if goes := (w == nil || o == w) && slices.Contains(selected(t), k); !goes && !leaving(o) {
					return true
				}
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

// maxSetWatches bounds a frame of setWatches; a server may be set to refuse large ones.
const maxSetWatches = 128 << 10

// frames returns the bodies of the requests that set the watches again on a new connection, and their opcode: the
// old one when there is nothing persistent, because servers before 3.6 know no other. Watches on the children of a node
// with a recursive watch come last: for a server before 3.9 the mode that was set last counts (ZOOKEEPER-4466).
func (ws *watches) frames(zxid int64) (op jute.Op, bodies [][]byte) {
	op = jute.OpSetWatches
	encode := jute.AppendSetWatches
	if len(ws[kindPersistent])+len(ws[kindRecursive]) > 0 {
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
	late := func(k kind, path string) bool { return k == kindChild && len(ws[kindRecursive][path]) > 0 }
	for _, pass := range []bool{false, true} {
		for k := range kinds {
			for path := range ws[k] {
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
