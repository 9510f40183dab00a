package zkserver

import (
	"maps"

	"github.com/go-zookeeper/zk"
)

// node is a znode. Its data and ACL are replaced, never changed: members and snapshots share them.
type node struct {
	data     []byte
	acl      []zk.ACL
	children map[string]struct{}
	owner    int64

	czxid, mzxid, pzxid int64
	ctime, mtime        int64
	version, aversion   int32
	creates             int32 // number of children ever created: the number of the next sequential child
}

// stat returns the Stat for clients. Its cversion counts all creates and deletes of children. The node counts only the
// creates: the deletes are the created children that do not exist any more.
func (n *node) stat() zk.Stat {
	children := int32(len(n.children))
	s := zk.Stat{
		Czxid:       n.czxid,
		Mzxid:       n.mzxid,
		Ctime:       n.ctime,
		Mtime:       n.mtime,
		Version:     n.version,
		Cversion:    n.creates*2 - children,
		Aversion:    n.aversion,
		DataLength:  int32(len(n.data)),
		NumChildren: children,
		Pzxid:       n.pzxid,
	}
	if isEphemeral(n.owner) {
		s.EphemeralOwner = n.owner
	}
	return s
}

func (n *node) clone() *node {
	c := *n
	c.children = maps.Clone(n.children)
	return &c
}
