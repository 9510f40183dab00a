package cache

import (
	"strings"

	"github.com/gocurator/curator/zkpath"
)

// node is a node of the tree that is in the cache or will be read.
type node struct {
	path   string
	parent *node
	below  *[]*node // nil if there are none: see kids

	kept *ChildData // the entry of nodeStorage

	czxid, mzxid, pzxid int64 // as in the last answer
	size                int32 // size of the data in bytes
	children            int32
	index               int32 // in the parent's kids

	live   bool // the node is in the cache
	listed bool // the children are known as of pzxid
	gone   bool // the node is dropped; answers for it are ignored

	wanted    want   // reads to send; the node is in todo unless there are none
	epoch     *epoch // the epoch of the oldest hint for wanted
	underWay  uint8  // reads of the data or the Stat under way
	suspected uint8  // number of reads, sent or wanted, that must end before the identity of the node is certain
	again     uint32 // the request from which on a read of the node counts, although its parent failed; see waitForParent
}

// want is a set of reads. If more than one is wanted, the first one of this list is sent first.
type want uint8

const (
	check  want = 1 << iota // the Stat without the data; for a large node that may be unchanged, and for a missing root
	data                    // the data
	list                    // the children
	chroot                  // the chroot, for a root that does not exist
	watch                   // no read: the recursive watch, as a failure of the root
)

// isOfNode reports whether w reads the node itself, which shows its identity.
func (w want) isOfNode() bool { return w == check || w == data }

// kids returns the children of n, in any order.
func (n *node) kids() []*node {
	if n.below == nil {
		return nil
	}
	return *n.below
}

// removeKid removes a node from the kids of n. The last kid moves to its index.
func (n *node) removeKid(kid *node) {
	kids := *n.below
	last := kids[len(kids)-1]
	kids[kid.index], last.index = last, kid.index
	kids[len(kids)-1] = nil
	if *n.below = kids[:len(kids)-1]; len(kids) == 1 {
		n.below = nil
	}
}

// failure is the error of a node that could not be read.
type failure struct {
	of  want // the reads that failed
	err error
}

// node returns the node at path. It creates missing nodes from there up to the root and makes them wanted. It returns
// nil if the path does not belong to the cache.
func (e *engine) node(path string) *node {
	if n := e.nodes[path]; n != nil {
		return n
	}
	if !isBelow(path, e.root.path) {
		return nil
	}
	parent, selector := e.node(zkpath.Parent(path)), e.settings.selector
	if parent == nil || !e.hasChildren(parent) || selector != nil && !selector.AcceptChild(path) {
		return nil
	}
	if parent.below == nil {
		parent.below = new([]*node)
	}
	kids := parent.below
	n := &node{path: path, parent: parent, index: int32(len(*kids))}
	*kids = append(*kids, n)
	e.nodes[path] = n
	e.want(n, data, e.epoch())
	return n
}

// isBelow reports whether path is below root.
func isBelow(path, root string) bool {
	return root == "/" && path != "/" || len(path) > len(root) && path[len(root)] == '/' && strings.HasPrefix(path, root)
}

// hasChildren reports whether the children of n belong to the cache.
func (e *engine) hasChildren(n *node) bool {
	depth := 0
	for up := n.parent; up != nil; up = up.parent {
		depth++
	}
	maxDepth, selector := e.settings.maxDepth, e.settings.selector
	return (maxDepth < 0 || depth < maxDepth) && (selector == nil || selector.TraverseChildren(n.path))
}

// want schedules a read of n. at is the epoch of the hint.
func (e *engine) want(n *node, w want, at *epoch) {
	e.announced = false
	switch {
	case n.wanted == 0:
		e.todo = append(e.todo, n)
	case at.number < n.epoch.number:
		n.epoch.pending--
	default:
		n.wanted |= w
		return
	}
	n.epoch = at
	at.pending++
	n.wanted |= w
}

// suspect schedules a read of n because it may have been created or deleted. The reads under way may not show that.
func (e *engine) suspect(n *node, w want, at *epoch) {
	n.suspected = n.underWay + 1
	e.want(n, w, at)
}

// forget drops n from the tree and cancels its reads.
func (e *engine) forget(n *node) {
	if n.wanted != 0 {
		n.wanted = 0
		n.epoch.pending--
	}
	n.gone = true
	n.parent.removeKid(n)
	delete(e.nodes, n.path)
	delete(e.failed, n)
}

// epoch is a period between two fences. A fence is reached when nothing that was wanted in an epoch before it is
// pending. A read that follows from an answer belongs to the epoch of that answer.
type epoch struct {
	number  int
	pending int        // wanted nodes, and reads under way
	reached chan error // closed when the fence at the end of the epoch is reached
}

// epoch returns the current epoch.
func (e *engine) epoch() *epoch { return e.epochs[len(e.epochs)-1] }

// addFence closes reached when everything that is wanted now is read.
func (e *engine) addFence(reached chan error) {
	last := e.epoch()
	last.reached = reached
	e.epochs = append(e.epochs, &epoch{number: last.number + 1})
}
