package simulation_test

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// resource is one thing that actors contend for.
type resource struct {
	path  string
	lines []line // of the nodes of the contenders
	most  int    // how many may share it; 0 is any number
	// isKept reports whether an operator may not delete a node now. It may be nil.
	isKept func(leader *curatortest.Server, name string) bool
	data   string // path of a node that its holders write, fenced
	// notifiedOfNode is true if a holder gets an event when its node is deleted.
	notifiedOfNode bool

	// The judge guards the fields below.
	claims     []*claim               // those that may be alive
	lostLock   map[string]time.Time   // nodes that were taken from their holders, and when
	lostLockOf map[*process]time.Time // when a node of a process was taken last: not every claim knows its node
	turnless   map[string]bool        // nodes that were deleted together with one that they waited for
	newest     int64                  // the highest token of all
	exclusive  int64                  // the highest token of an exclusive claim
	leader     string                 // the node of the last exclusive claim
	mzxid      int64                  // of the data
	writes     []*fencedWrite         // to the data, by their ids
	// revocations has the requests to release, by node.
	revocations map[string]*revocation
}

// line is a node whose children belong to waiters or holders.
type line struct {
	path  string
	holds bool // a child may stand for a hold; else its owner waits
	turns bool // a child waits for those with lower numbers
}

// newResource returns a resource whose nodes stand in one line below its path.
func newResource(p string) *resource {
	return &resource{
		path: p, lines: []line{{p, true, true}}, lostLock: map[string]time.Time{}, lostLockOf: map[*process]time.Time{},
		data: "/data" + p, revocations: map[string]*revocation{}, turnless: map[string]bool{},
	}
}

// name is the name of the resource.
func (r *resource) name() string { return zkpath.Node(r.path) }

// newSemaphore returns the resource of a semaphore, which has two lines.
func newSemaphore(p string, leases int) *resource {
	r := newResource(p)
	r.lines = []line{{path.Join(p, "locks"), false, true}, {path.Join(p, "leases"), true, false}}
	r.most = leases
	return r
}

// claim is the right of an actor: it holds the resource as long as the context is alive.
type claim struct {
	resource *resource
	process  *process
	client   *framework.Client
	actor    string
	owner    int64 // claims of one owner do not exclude each other
	shared   bool
	follows  *claim // an earlier claim of the same owner with the same token; may be nil
	path     string // of its node; "" if the recipe does not return it
	token    int64  // 0 for none
	context  context.Context
	fence    fenced // nil if it writes nothing
	most     int    // how many may share at its grant, if that is not the resource's number
	// revocable is true if the holder gets requests to release.
	revocable bool
	lostLock  time.Time     // when its node was taken away; zero if it was not
	taken     chan struct{} // closed then
	kept      chan struct{} // closed when the holder need not keep it any longer; nil if it need not
}

func (c *claim) String() string {
	kind := "exclusive"
	if c.shared {
		kind = "shared"
	}
	node := zkpath.Normalize(path.Base(c.path))
	return fmt.Sprintf("%s to %s (%s, node %s, token %#x)", c.resource.path, c.actor, kind, node, c.token)
}

// isAlive reports whether the context of the claim is alive.
func (c *claim) isAlive() bool { return c.context.Err() == nil && !c.process.dead.Load() }
