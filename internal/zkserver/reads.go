package zkserver

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

// read answers a request that changes nothing but the watches of the connection.
func (c *conn) read(r *jute.Request, reply *jute.Reply) jute.Code {
	switch r.Op {
	case jute.OpExists:
		return c.exists(r, reply)
	case jute.OpGetData:
		return c.getData(r, reply)
	case jute.OpGetChildren, jute.OpGetChildren2:
		return c.getChildren(r, reply)
	case jute.OpMultiRead:
		return c.multiRead(r, reply)
	case jute.OpGetACL:
		return c.getACL(r, reply)
	case jute.OpGetAllChildrenNumber:
		n, code := c.readable(r.Path, zk.PermRead)
		if n != nil {
			reply.Count = int32(c.member.tree.descendants(r.Path))
		}
		return code
	case jute.OpGetEphemerals:
		reply.Children = c.ephemerals(r.Path)
	case jute.OpSync:
		c.member.catchUp()
		reply.Path = r.Path
	case jute.OpWhoAmI:
		reply.ACL = c.ids.users()
	case jute.OpAddWatch:
		return c.addWatch(r)
	case jute.OpCheckWatches:
		return c.checkWatches(r)
	case jute.OpRemoveWatches:
		return c.removeWatches(r)
	}
	return jute.CodeOK
}

// readable returns a node for which the client has one of the permissions.
func (c *conn) readable(path string, perms int32) (*node, jute.Code) {
	n := c.member.tree.get(path)
	if n == nil {
		return nil, jute.CodeNoNode
	}
	if !allowed(n.acl, perms, c.ids) {
		return nil, jute.CodeNoAuth
	}
	return n, jute.CodeOK
}

func (c *conn) exists(r *jute.Request, reply *jute.Reply) jute.Code {
	if strings.IndexByte(r.Path, 0) >= 0 {
		return jute.CodeBadArguments
	}
	n := c.member.tree.get(r.Path)
	if n != nil && c.member.service.config.Version.guarded() && !allowed(n.acl, zk.PermRead, c.ids) {
		return jute.CodeNoAuth
	}
	if r.Watch {
		c.member.dataWatches.add(c, r.Path, watchOnce)
	}
	if n == nil {
		return jute.CodeNoNode
	}
	reply.Stat = n.stat()
	return jute.CodeOK
}

func (c *conn) getData(r *jute.Request, reply *jute.Reply) jute.Code {
	n, code := c.readable(r.Path, zk.PermRead)
	if n == nil {
		return code
	}
	if r.Watch {
		c.member.dataWatches.add(c, r.Path, watchOnce)
	}
	reply.Data, reply.Stat = n.data, n.stat()
	return jute.CodeOK
}

func (c *conn) getChildren(r *jute.Request, reply *jute.Reply) jute.Code {
	n, code := c.readable(r.Path, zk.PermRead)
	if n == nil {
		return code
	}
	if r.Watch {
		c.member.childWatches.add(c, r.Path, watchOnce)
	}
	reply.Children, reply.Stat = shuffledKeys(n.children), n.stat()
	return jute.CodeOK
}

// multiRead reads node by node. The failure of one does not affect the others.
func (c *conn) multiRead(r *jute.Request, reply *jute.Reply) jute.Code {
	reply.Results = make([]jute.Result, len(r.Ops))
	for i := range r.Ops {
		op, result := &r.Ops[i], &reply.Results[i]
		op.Watch = false // Java does not send it in a multi-read
		var one jute.Reply
		if code := c.read(op, &one); code != jute.CodeOK {
			result.Op, result.Code = jute.OpError, code
			continue
		}
		result.Op, result.Data, result.Stat, result.Children = op.Op, one.Data, one.Stat, one.Children
	}
	return jute.CodeOK
}

func (c *conn) getACL(r *jute.Request, reply *jute.Reply) jute.Code {
	n, code := c.readable(r.Path, zk.PermRead|zk.PermAdmin)
	if n == nil {
		return code
	}
	reply.ACL, reply.Stat = n.acl, n.stat()
	if !allowed(n.acl, zk.PermAdmin, c.ids) {
		reply.ACL = hideDigests(n.acl)
	}
	return jute.CodeOK
}

func (c *conn) ephemerals(prefix string) []string {
	if trimmed := strings.TrimSpace(prefix); trimmed == "" || trimmed == rootPath {
		prefix = ""
	}
	paths := shuffledKeys(c.member.tree.ephemerals[c.session.id])
	return slices.DeleteFunc(paths, func(p string) bool { return !strings.HasPrefix(p, prefix) })
}

// shuffledKeys returns the members of a set in the order of a hash, as Apache ZooKeeper does. The order is the same in
// each run, but is not sorted, so that no client relies on it.
func shuffledKeys(set map[string]struct{}) []string {
	type key struct {
		hash uint32
		name string
	}
	order := make([]key, 0, len(set))
	for name := range set {
		order = append(order, key{hash(name), name})
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.name, b.name))
	})
	names := make([]string, len(order))
	for i, k := range order {
		names[i] = k.name
	}
	return names
}

func hash(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s)) //nolint:errcheck // it never fails
	return h.Sum32()
}

func sortedKeys(set map[string]struct{}) []string { return slices.Sorted(maps.Keys(set)) }
