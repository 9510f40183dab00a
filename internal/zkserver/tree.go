package zkserver

import (
	"maps"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// tree has all znodes by path.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // ephemeral nodes by session
	expiring   map[string]struct{}           // containers and nodes with a time to live
	quotas     map[string]struct{}           // paths of the nodes with a quota
	applied    int64                         // the zxid of the last transaction
}

// watching receives the changes of the nodes of a tree. acl is the ACL of the node, or the last one of a deleted node.
type watching interface {
	created(path string, acl []zk.ACL)
	deleted(path string, acl []zk.ACL)
	dataChanged(path string, acl []zk.ACL)
	childrenChanged(path string, acl []zk.ACL)
}

// newTree returns a tree with the nodes of the system. config is the configuration that an ensemble writes at its
// start; it may be nil.
func newTree(config *ensemble, began time.Time) *tree {
	t := &tree{
		nodes:      map[string]*node{},
		ephemerals: map[int64]map[string]struct{}{},
		expiring:   map[string]struct{}{},
		quotas:     map[string]struct{}{},
	}
	for _, path := range []string{rootPath, systemPath, quotaPath, configPath} {
		t.nodes[path] = &node{data: []byte{}, acl: zk.WorldACL(zk.PermAll), children: map[string]struct{}{}}
		if path != rootPath {
			parent, name := split(path)
			t.nodes[parent].children[name] = struct{}{}
		}
	}
	c := t.nodes[configPath]
	c.acl, c.aversion = zk.WorldACL(zk.PermRead), -1
	t.configure(config, began)
	return t
}

// configure writes the configuration of an ensemble that starts.
func (t *tree) configure(config *ensemble, at time.Time) {
	if c := t.nodes[configPath]; config != nil {
		c.data, c.version, c.mzxid, c.mtime = config.text(), -1, config.version, at.UnixMilli()
	}
}

// get returns a node. An empty path means the root too, as in Apache ZooKeeper.
func (t *tree) get(path string) *node {
	if path == "" {
		path = rootPath
	}
	return t.nodes[path]
}

func (t *tree) clone() *tree {
	c := &tree{
		nodes:      make(map[string]*node, len(t.nodes)),
		ephemerals: make(map[int64]map[string]struct{}, len(t.ephemerals)),
		expiring:   maps.Clone(t.expiring),
		quotas:     maps.Clone(t.quotas),
		applied:    t.applied,
	}
	for path, n := range t.nodes {
		c.nodes[path] = n.clone()
	}
	for id, paths := range t.ephemerals {
		c.ephemerals[id] = maps.Clone(paths)
	}
	return c
}

// apply applies the changes of a transaction, and returns a result for each.
func (t *tree) apply(x *txn, w watching) []jute.Result {
	t.applied = x.zxid
	results := make([]jute.Result, len(x.changes))
	for i := range x.changes {
		c := &x.changes[i]
		r := &results[i]
		r.Op, r.Path = c.op, c.path
		switch c.op {
		case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
			r.Stat = t.create(x, c, w)
		case jute.OpDelete:
			t.delete(x, c.path, w)
		case jute.OpSetData, jute.OpReconfig:
			n := t.nodes[c.path]
			grown := int64(len(c.data) - len(n.data))
			n.data, n.version, n.mzxid, n.mtime = c.data, c.version, x.zxid, x.time
			r.Stat = n.stat()
			t.useQuota(c.path, 0, grown)
			w.dataChanged(c.path, n.acl)
		case opSetSequence:
			t.nodes[c.path].creates = c.version
		case jute.OpSetACL:
			n := t.nodes[c.path]
			n.acl, n.aversion = c.acl, c.version
			r.Stat = n.stat()
		}
	}
	return results
}

func (t *tree) create(x *txn, c *change, w watching) zk.Stat {
	parentPath, name := split(c.path)
	parent := t.nodes[parentPath]
	// The counter stops after an overflow: from then on every sequential create finds its name in use.
	if c.version > parent.creates {
		parent.creates, parent.pzxid = c.version, x.zxid
	}
	n := &node{
		data:     c.data,
		acl:      c.acl,
		children: map[string]struct{}{},
		owner:    c.owner,
		czxid:    x.zxid,
		mzxid:    x.zxid,
		pzxid:    x.zxid,
		ctime:    x.time,
		mtime:    x.time,
	}
	parent.children[name] = struct{}{}
	t.nodes[c.path] = n
	switch {
	case isEphemeral(c.owner):
		if t.ephemerals[c.owner] == nil {
			t.ephemerals[c.owner] = map[string]struct{}{}
		}
		t.ephemerals[c.owner][c.path] = struct{}{}
	case c.owner != ownerNone:
		t.expiring[c.path] = struct{}{}
	}
	s := n.stat()
	t.noteQuota(c.path, true)
	t.useQuota(c.path, 1, int64(len(c.data)))
	w.created(c.path, n.acl)
	w.childrenChanged(parentPath, parent.acl)
	return s
}

func (t *tree) delete(x *txn, path string, w watching) {
	n := t.nodes[path]
	parentPath, name := split(path)
	parent := t.nodes[parentPath]
	delete(parent.children, name)
	parent.pzxid = x.zxid
	delete(t.nodes, path)
	delete(t.expiring, path)
	if mine := t.ephemerals[n.owner]; mine != nil {
		delete(mine, path)
		if len(mine) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
	t.noteQuota(path, false)
	t.useQuota(path, -1, -int64(len(n.data)))
	w.deleted(path, n.acl)
	w.childrenChanged(parentPath, parent.acl)
}

// descendants counts the nodes below a path.
func (t *tree) descendants(path string) int {
	if path == rootPath {
		return len(t.nodes) - 1
	}
	n := 0
	for p := range t.nodes {
		if strings.HasPrefix(p, path+"/") {
			n++
		}
	}
	return n
}
