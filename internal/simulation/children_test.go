package simulation_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/zkpath"
)

// children records the children of a node as the leader of the ensemble has them.
type children struct {
	path  string
	epoch int64 // czxid of the node, 0 if it does not exist
	pzxid int64
	nodes map[string]*node // those that exist, by name
	// states has the states of the node that were seen, in their order.
	states []state
}

func newChildren(path string) *children { return &children{path: path, nodes: map[string]*node{}} }

// node is a child from its create to its end. A later node may have the same name, as locks do, or after the parent was
// created again.
type node struct {
	name  string
	path  string
	epoch int64 // of the parent
	czxid int64
	owner int64 // session of an ephemeral node
	data  []byte
	born  time.Time
	ended time.Time // zero while it exists
	// withSession is true if an ephemeral node has ended with its session.
	withSession bool
}

// state is a state of the parent, when it was first seen.
type state struct {
	at    time.Time
	pzxid int64 // 0 without a parent
}

// between returns the times of the updates before and after a transaction.
func (c *children) between(zxid int64) (before, after time.Time) {
	after = time.Now()
	for _, s := range slices.Backward(c.states) {
		if s.pzxid > 0 && s.pzxid < zxid {
			return s.at, after
		}
		after = s.at
	}
	return before, after
}

// wasDeleted reports whether the node did not exist at some moment since a time, and had existed before.
func (c *children) wasDeleted(since time.Time) bool {
	end := time.Now()
	for i, s := range slices.Backward(c.states) {
		if s.pzxid == 0 && i > 0 && !end.Before(since) {
			return true
		}
		end = s.at
	}
	return false
}

func (n *node) isThere() bool { return n.ended.IsZero() }

// update returns the nodes that were created and those that have ended since the last update, in the order of their
// creates.
func (c *children) update(leader *curatortest.Server) (born, ended []*node) {
	now := time.Now()
	parent, ok := leader.Node(c.path)
	if n := len(c.states); n == 0 || c.states[n-1].pzxid != parent.Stat.Pzxid {
		c.states = append(c.states, state{at: now, pzxid: parent.Stat.Pzxid})
	}
	if !ok || parent.Stat.Czxid != c.epoch {
		for name, n := range c.nodes {
			n.ended = now
			ended = append(ended, n)
			delete(c.nodes, name)
		}
		c.epoch, c.pzxid = 0, 0
	}
	if ok && parent.Stat.Pzxid != c.pzxid {
		c.epoch, c.pzxid = parent.Stat.Czxid, parent.Stat.Pzxid
		ended = append(ended, c.remove(leader, now)...)
		born = c.add(leader, parent.Children, now)
	}
	slices.SortFunc(born, byBirth)
	slices.SortFunc(ended, byBirth)
	return born, ended
}

// byBirth orders nodes as they were created. Nodes of one transaction are in the order of their numbers, if they have
// numbers.
func byBirth(a, b *node) int {
	return cmp.Or(cmp.Compare(a.czxid, b.czxid), cmp.Compare(numberOf(a), numberOf(b)))
}

// remove ends the nodes that no longer exist, or that another node has replaced.
func (c *children) remove(leader *curatortest.Server, now time.Time) (ended []*node) {
	for name, n := range c.nodes {
		if is, ok := leader.Node(n.path); ok && is.Stat.Czxid == n.czxid {
			continue
		}
		n.ended = now
		ended = append(ended, n)
		delete(c.nodes, name)
	}
	return ended
}

func (c *children) add(leader *curatortest.Server, names []string, now time.Time) (born []*node) {
	for _, name := range names {
		if c.nodes[name] != nil {
			continue
		}
		path := zkpath.Join(c.path, name)
		is, ok := leader.Node(path)
		if !ok {
			continue
		}
		n := &node{
			name: name, path: path, epoch: c.epoch, czxid: is.Stat.Czxid, owner: is.Stat.EphemeralOwner,
			data: is.Data, born: now,
		}
		c.nodes[name] = n
		born = append(born, n)
	}
	return born
}
