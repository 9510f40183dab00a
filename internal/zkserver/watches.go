package zkserver

import (
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// watchMode is the set of modes in which a connection watches a path.
type watchMode uint8

const (
	watchOnce watchMode = 1 << iota
	watchPersistent
	watchRecursive
)

// watchTable has the watches of one kind: those on data, or those on children.
type watchTable struct {
	manyModes bool
	byPath    map[string]map[*conn]watchMode
	byConn    map[*conn]map[string]struct{}
	recursive int // number of recursive watches
}

func newWatchTable(v Version) *watchTable {
	return &watchTable{
		manyModes: v.manyModes(),
		byPath:    map[string]map[*conn]watchMode{},
		byConn:    map[*conn]map[string]struct{}{},
	}
}

// add adds a watch of the connection on the path. Before 3.9 the last mode is the only one.
func (t *watchTable) add(c *conn, path string, mode watchMode) {
	if t.manyModes {
		mode |= t.byPath[path][c]
	}
	t.set(c, path, mode)
}

// set sets the modes in which the connection watches the path; 0 removes the watch.
func (t *watchTable) set(c *conn, path string, mode watchMode) {
	before := t.byPath[path][c]
	t.recursive += int(mode&watchRecursive/watchRecursive) - int(before&watchRecursive/watchRecursive)
	if mode == 0 {
		delete(t.byPath[path], c)
		if len(t.byPath[path]) == 0 {
			delete(t.byPath, path)
		}
		delete(t.byConn[c], path)
		if len(t.byConn[c]) == 0 {
			delete(t.byConn, c)
		}
		return
	}
	if t.byPath[path] == nil {
		t.byPath[path] = map[*conn]watchMode{}
	}
	t.byPath[path][c] = mode
	if t.byConn[c] == nil {
		t.byConn[c] = map[string]struct{}{}
	}
	t.byConn[c][path] = struct{}{}
}

// remove removes modes of the connection and the path, and reports whether one of them was set.
func (t *watchTable) remove(c *conn, path string, modes watchMode) bool {
	before := t.byPath[path][c]
	t.set(c, path, before&^modes)
	return before&modes != 0
}

// forget ends all watches of a connection.
func (t *watchTable) forget(c *conn) {
	for path := range t.byConn[c] {
		t.set(c, path, 0)
	}
}

// fire returns the connections that get an event of the path, in the order in which they were accepted, and ends the
// one-shot watches.
func (t *watchTable) fire(path string, event zk.EventType) []*conn {
	var notified []*conn
	for c, mode := range t.byPath[path] {
		if mode&^watchRecursive != 0 || event != zk.EventNodeChildrenChanged {
			notified = append(notified, c)
		}
		if mode&watchOnce != 0 {
			t.set(c, path, mode&^watchOnce)
		}
	}
	if t.recursive > 0 && event != zk.EventNodeChildrenChanged {
		for ancestor := path; ancestor != rootPath && ancestor != ""; {
			ancestor, _ = split(ancestor)
			for c, mode := range t.byPath[ancestor] {
				if mode&watchRecursive != 0 {
					notified = append(notified, c)
				}
			}
		}
	}
	slices.SortFunc(notified, func(a, b *conn) int { return int(a.number - b.number) })
	return slices.Compact(notified)
}

// count returns the number of watches.
func (t *watchTable) count() int {
	n := 0
	for _, paths := range t.byConn {
		n += len(paths)
	}
	return n
}

// The modes of an addWatch.
const (
	addPersistent = 0
	addRecursive  = 1
)

func (c *conn) addWatch(r *jute.Request) jute.Code {
	switch r.Flags {
	case addPersistent:
		c.watch(r.Path, watchPersistent)
	case addRecursive:
		c.watch(r.Path, watchRecursive)
	default:
		return jute.CodeMarshallingError // Java fails while it decodes the request
	}
	return jute.CodeOK
}

// watch adds a persistent watch.
func (c *conn) watch(path string, mode watchMode) {
	m := c.member
	m.dataWatches.add(c, path, mode)
	// A recursive watch needs no children's events. Before 3.9 it is in both tables all the same, and replaces a
	// one-shot watch there.
	if mode != watchRecursive || !m.service.config.Version.manyModes() {
		m.childWatches.add(c, path, mode)
	}
}

// The types of watches of a checkWatches or removeWatches.
const (
	typeChildren = iota + 1
	typeData
	typeAny
	typePersistent
	typeRecursive
)

const anyMode = watchOnce | watchPersistent | watchRecursive

// selection returns the modes that a type selects in each table. ok is false if this version has no such type.
func (c *conn) selection(watchType int32) (data, child watchMode, ok bool) {
	once := anyMode
	if c.member.service.config.Version.manyModes() {
		once = watchOnce
	}
	switch watchType {
	case typeChildren:
		return 0, once, true
	case typeData:
		return once, 0, true
	case typeAny:
		return anyMode, anyMode, true
	case typePersistent:
		return watchPersistent, watchPersistent, once == watchOnce
	case typeRecursive:
		return watchRecursive, 0, once == watchOnce
	}
	return 0, 0, false
}

func (c *conn) checkWatches(r *jute.Request) jute.Code {
	m := c.member
	data, child, ok := c.selection(r.Flags)
	if !ok {
		return jute.CodeMarshallingError
	}
	found := m.dataWatches.byPath[r.Path][c]&data != 0 || m.childWatches.byPath[r.Path][c]&child != 0
	if !m.service.config.Version.manyModes() { // any connection's watch will do, but not on "", which has no parents
		found = data != 0 && len(m.dataWatches.byPath[r.Path]) > 0 || child != 0 && len(m.childWatches.byPath[r.Path]) > 0
		found = found && r.Path != ""
	}
	if !found {
		return jute.CodeNoWatcher
	}
	return jute.CodeOK
}

func (c *conn) removeWatches(r *jute.Request) jute.Code {
	data, child, ok := c.selection(r.Flags)
	if !ok {
		return jute.CodeMarshallingError
	}
	removedChild := c.member.childWatches.remove(c, r.Path, child)
	removedData := c.member.dataWatches.remove(c, r.Path, data)
	if !removedChild && !removedData {
		return jute.CodeNoWatcher
	}
	return jute.CodeOK
}

// setWatches sets the watches of a reconnected session, and sends the events that its one-shot watches have missed. It
// handles the lists in order and fails at one that is null.
func (c *conn) setWatches(w *jute.SetWatches, persistent bool) jute.Code {
	lists := []struct {
		paths []string
		set   func(path string)
	}{
		{w.Data, func(path string) { c.rewatchData(path, w.RelativeZxid) }},
		{w.Exist, c.rewatchExist},
		{w.Child, func(path string) { c.rewatchChild(path, w.RelativeZxid) }},
		{w.Persistent, func(path string) { c.watch(path, watchPersistent) }},
		{w.Recursive, func(path string) { c.watch(path, watchRecursive) }},
	}
	if !persistent {
		lists = lists[:3]
	}
	for _, l := range lists {
		if l.paths == nil {
			return jute.CodeMarshallingError
		}
		for _, path := range l.paths {
			l.set(path)
		}
	}
	return jute.CodeOK
}

func (c *conn) rewatchData(path string, seen int64) {
	switch n := c.member.tree.get(path); {
	case n == nil:
		c.notifyAt(undated, path, zk.EventNodeDeleted)
	case n.mzxid > seen:
		c.notifyAt(undated, path, zk.EventNodeDataChanged)
	default:
		c.member.dataWatches.add(c, path, watchOnce)
	}
}

func (c *conn) rewatchExist(path string) {
	if c.member.tree.get(path) != nil {
		c.notifyAt(undated, path, zk.EventNodeCreated)
	} else {
		c.member.dataWatches.add(c, path, watchOnce)
	}
}

func (c *conn) rewatchChild(path string, seen int64) {
	switch n := c.member.tree.get(path); {
	case n == nil:
		c.notifyAt(undated, path, zk.EventNodeDeleted)
	case n.pzxid > seen:
		c.notifyAt(undated, path, zk.EventNodeChildrenChanged)
	default:
		c.member.childWatches.add(c, path, watchOnce)
	}
}

// The connections of a member watch the tree of that member.

func (m *Member) created(path string, acl []zk.ACL) {
	m.notify(m.dataWatches.fire(path, zk.EventNodeCreated), path, zk.EventNodeCreated, acl)
}

func (m *Member) dataChanged(path string, acl []zk.ACL) {
	m.notify(m.dataWatches.fire(path, zk.EventNodeDataChanged), path, zk.EventNodeDataChanged, acl)
}

func (m *Member) childrenChanged(path string, acl []zk.ACL) {
	m.notify(m.childWatches.fire(path, zk.EventNodeChildrenChanged), path, zk.EventNodeChildrenChanged, acl)
}

// deleted notifies a connection once, whatever watches it has.
func (m *Member) deleted(path string, acl []zk.ACL) {
	notified := m.dataWatches.fire(path, zk.EventNodeDeleted)
	m.notify(notified, path, zk.EventNodeDeleted, acl)
	others := slices.DeleteFunc(m.childWatches.fire(path, zk.EventNodeDeleted), func(c *conn) bool {
		return slices.Contains(notified, c)
	})
	m.notify(others, path, zk.EventNodeDeleted, acl)
}

func (m *Member) notify(conns []*conn, path string, event zk.EventType, acl []zk.ACL) {
	for _, c := range conns {
		if allowed(acl, zk.PermRead, c.ids) {
			c.notify(path, event)
		}
	}
}
