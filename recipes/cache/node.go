package cache

import (
	"math"
	"strings"
	"time"

	"github.com/gocurator/curator/zkpath"
)

// node is a node of the tree that is in the cache, or that is to be read.
type node struct {
	path   string
	parent *node
	below  *[]*node // nil without any: see kids

	kept *ChildData // by nodeStorage

	czxid, mzxid, pzxid         int64 // of its last answer
	size                        int32 // of its data
	children                    int32
	place                       int32 // in the parent's kids
	generation, againGeneration int32 // of the oldest hint

	live       bool // it is in the cache
	listed     bool // its children are known as of pzxid
	gone       bool // it is not in the tree any more: what is still under way for it is ignored
	doubt      bool // it may have been deleted and created again since the read of its last answer
	doubtAgain bool // the same of the read under way
	queued     bool

	wanted want // to be read
	flying want // being read
	again  want // wanted while being read
}

// want is a set of reads.
type want uint8

const (
	data  want = 1 << iota // with a watch, if those are one-shot
	list                   // of the children, with a watch, if those are one-shot
	birth                  // of the root that is not there: only sets a watch
	check                  // of the Stat, without the data: of a large node that may not have changed
)

// kids returns the nodes directly below n, in any order.
func (n *node) kids() []*node {
	if n.below == nil {
		return nil
	}
	return *n.below
}

// removeKid removes a node from the kids of n. The last one takes its place.
func (n *node) removeKid(kid *node) {
	kids := *n.below
	last := kids[len(kids)-1]
	kids[kid.place], last.place = last, kid.place
	kids[len(kids)-1] = nil
	if *n.below = kids[:len(kids)-1]; len(kids) == 1 {
		n.below = nil
	}
}

// failure is why a node could not be read.
type failure struct {
	err      error
	attempts int
	due      time.Time
}

func (n *node) isPending() bool { return n.wanted|n.flying|n.again != 0 }

// liveNodes returns the number of nodes in the cache. e.mu is held.
func (e *engine) liveNodes() (count int) {
	for _, n := range e.nodes {
		if n.live {
			count++
		}
	}
	return count
}

// isPresent reports whether n is known to exist, be it that it cannot be read. e.mu is held.
func (e *engine) isPresent(n *node) bool { return n.live || e.failed[n] != nil }

// node returns the node of a path, and makes it and those above it, which are to be read. It returns nil if the node
// does not belong to the cache.
func (e *engine) node(path string) *node {
	if n := e.nodes[path]; n != nil {
		return n
	}
	if !isBelow(path, e.root.path) {
		return nil
	}
	parent := e.node(zkpath.Parent(path))
	if parent == nil || !e.hasChildren(parent) || !e.accepts(path) {
		return nil
	}
	if parent.below == nil {
		parent.below = new([]*node)
	}
	kids := parent.below
	n := &node{path: path, parent: parent, place: int32(len(*kids))}
	*kids = append(*kids, n)
	e.nodes[path] = n
	e.want(n, data, e.generation)
	return n
}

func isBelow(path, root string) bool {
	return root == "/" && path != "/" || len(path) > len(root) && path[len(root)] == '/' && strings.HasPrefix(path, root)
}

// hasChildren reports whether the cache has the children of n.
func (e *engine) hasChildren(n *node) bool {
	maxDepth := e.settings.maxDepth
	return (maxDepth == math.MaxInt || depth(n.path)-depth(e.root.path) < maxDepth) &&
		(e.settings.selector == nil || e.settings.selector.TraverseChildren(n.path))
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

func (e *engine) accepts(path string) bool {
	return e.settings.selector == nil || e.settings.selector.AcceptChild(path)
}

// want has n read. The generation is that of the hint.
func (e *engine) want(n *node, w want, generation int32) {
	e.ahead = false
	if n.flying&w != 0 {
		if n.again == 0 || isOlder(generation, n.againGeneration) {
			n.againGeneration = generation
		}
		n.again |= w
		return
	}
	switch {
	case !n.isPending():
		e.pend(n, generation)
	case isOlder(generation, n.generation):
		e.unpend(n)
		e.pend(n, generation)
	}
	e.queue(n, w)
}

// isOlder compares two generations, of which those that are in use are close to each other: the count wraps.
func isOlder(a, b int32) bool { return a-b < 0 }

func (e *engine) queue(n *node, w want) {
	n.wanted |= w
	if !n.queued {
		n.queued = true
		e.todo = append(e.todo, n)
	}
}

// suspect has n read because it may have been created or deleted.
func (e *engine) suspect(n *node, w want) {
	n.doubt, n.doubtAgain = true, n.flying&(data|check) != 0
	e.want(n, w, e.generation)
}

func (e *engine) pend(n *node, generation int32) {
	n.generation = generation
	e.pending[generation]++
}

func (e *engine) unpend(n *node) {
	if e.pending[n.generation]--; e.pending[n.generation] == 0 {
		delete(e.pending, n.generation)
	}
}

// landed ends a read of n, after what follows from its answer is wanted.
func (e *engine) landed(n *node, w want) {
	if n.gone {
		return
	}
	again := n.again & w
	n.flying &^= w
	n.again &^= w
	switch {
	case !n.isPending() && again == 0:
		e.unpend(n)
	case n.wanted|n.flying == 0 && again != 0: // all that was wanted before is read
		e.unpend(n)
		e.pend(n, n.againGeneration)
	}
	if again != 0 {
		e.queue(n, again)
	}
}

// forget drops n from the tree, and what is to be read of it.
func (e *engine) forget(n *node) {
	if n.isPending() {
		e.unpend(n)
	}
	n.gone = true
	n.wanted, n.flying, n.again = 0, 0, 0
	n.parent.removeKid(n)
	delete(e.nodes, n.path)
	delete(e.failed, n)
}
