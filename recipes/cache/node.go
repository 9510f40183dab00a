package cache

import (
	"math"
	"strings"
	"time"

	"github.com/gocurator/curator/zkpath"
)

// node is a node of the tree that is in the cache or will be read.
type node struct {
	path   string
	parent *node
	below  *[]*node // nil if there are none: see kids

	kept *ChildData // the entry of nodeStorage

	czxid, mzxid, pzxid         int64 // of the last answer
	size                        int32 // of the data, in bytes
	children                    int32
	index                       int32 // in the parent's kids
	generation, againGeneration int32 // of the oldest hint for wanted and reading, and for again

	live           bool // the node is in the cache
	listed         bool // the children are known as of pzxid
	gone           bool // the node is dropped; answers for it are ignored
	suspected      bool // the node may have been deleted and created again since the last answer
	suspectedAgain bool // the same, since the read under way
	queued         bool

	wanted  want // reads to send
	reading want // reads under way
	again   want // reads to send after those under way
}

// want is a set of reads.
type want uint8

const (
	data   want = 1 << iota // the data; sets a one-shot watch if the server has no others
	list                    // the children; sets a one-shot watch as data does
	exists                  // a missing root; sets a one-shot watch of its creation
	check                   // the Stat without the data; for a large node that may be unchanged
)

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
	of       want // the reads that failed
	err      error
	attempts int
	pause    time.Duration // the last one
	due      time.Time
}

// isPending reports whether a read of n is wanted or under way.
func (n *node) isPending() bool { return n.wanted|n.reading|n.again != 0 }

// liveNodes returns the number of nodes in the cache. The caller holds e.mu.
func (e *engine) liveNodes() (count int) {
	for _, n := range e.nodes {
		if n.live {
			count++
		}
	}
	return count
}

// isPresent reports whether n is known to exist, even if it cannot be read. The caller holds e.mu.
func (e *engine) isPresent(n *node) bool { return n.live || e.failed[n] != nil }

// node returns the node at path. It creates missing nodes from there up to the root and makes them wanted. It returns
// nil if the path does not belong to the cache.
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
	n := &node{path: path, parent: parent, index: int32(len(*kids))}
	*kids = append(*kids, n)
	e.nodes[path] = n
	e.want(n, data, e.generation)
	return n
}

// isBelow reports whether path is below root.
func isBelow(path, root string) bool {
	return root == "/" && path != "/" || len(path) > len(root) && path[len(root)] == '/' && strings.HasPrefix(path, root)
}

// hasChildren reports whether the children of n belong to the cache.
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

// accepts reports whether the selector accepts the node at path.
func (e *engine) accepts(path string) bool {
	return e.settings.selector == nil || e.settings.selector.AcceptChild(path)
}

// want schedules a read of n. generation is that of the hint.
func (e *engine) want(n *node, w want, generation int32) {
	e.announced = false
	if n.reading&w != 0 {
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

// isOlder reports whether generation a is older than b. Generations wrap; those in use are close to each other.
func isOlder(a, b int32) bool { return a-b < 0 }

// queue adds n to todo.
func (e *engine) queue(n *node, w want) {
	n.wanted |= w
	if !n.queued {
		n.queued = true
		e.todo = append(e.todo, n)
	}
}

// suspect schedules a read of n because it may have been created or deleted.
func (e *engine) suspect(n *node, w want) {
	n.suspected, n.suspectedAgain = true, n.reading&(data|check) != 0
	e.want(n, w, e.generation)
}

// pend counts n as pending in a generation.
func (e *engine) pend(n *node, generation int32) {
	n.generation = generation
	e.pending[generation]++
}

// unpend undoes pend.
func (e *engine) unpend(n *node) {
	if e.pending[n.generation]--; e.pending[n.generation] == 0 {
		delete(e.pending, n.generation)
	}
}

// finishRead ends a read of n. The caller first schedules the reads that follow from the answer.
func (e *engine) finishRead(n *node, w want) {
	if n.gone {
		return
	}
	again := n.again & w
	n.reading &^= w
	n.again &^= w
	switch {
	case !n.isPending() && again == 0:
		e.unpend(n)
	case n.wanted|n.reading == 0 && again != 0: // all earlier reads are finished
		e.unpend(n)
		e.pend(n, n.againGeneration)
	}
	if again != 0 {
		e.queue(n, again)
	}
}

// forget drops n from the tree and cancels its reads.
func (e *engine) forget(n *node) {
	if n.isPending() {
		e.unpend(n)
	}
	n.gone = true
	n.wanted, n.reading, n.again = 0, 0, 0
	n.parent.removeKid(n)
	delete(e.nodes, n.path)
	delete(e.failed, n)
}
