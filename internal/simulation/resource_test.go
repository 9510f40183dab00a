package simulation_test

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/zkpath"
)

// resource is what actors contend for.
type resource struct {
	path  string
	lines []line // of the nodes of those who contend for it
	most  int    // how many may share it; 0 is any number
	// isKept reports whether no operator deletes a node now; nil if any may be deleted.
	isKept func(leader *curatortest.Server, name string) bool
	// notifiedOfNode is whether a holder gets an event when its node is deleted.
	notifiedOfNode bool

	// All below is guarded by the judge.
	claims    []*claim             // those that may be alive
	robbed    map[string]time.Time // nodes that were taken from their holders, and when
	newest    int64                // the highest token of all
	exclusive int64                // the highest token of an exclusive claim
	leader    string               // the node of the last exclusive claim
}

// line is a node whose children belong to those who wait or hold.
type line struct {
	path  string
	holds bool // a child may stand for a hold; else its owner only waits
}

// newResource returns a resource whose nodes stand in one line below its path.
func newResource(p string) *resource {
	return &resource{path: p, lines: []line{{p, true}}, robbed: map[string]time.Time{}}
}

// name is what else the resource is called.
func (r *resource) name() string { return zkpath.Node(r.path) }

// newSemaphore returns the resource of a semaphore, which has two lines.
func newSemaphore(p string, leases int) *resource {
	r := newResource(p)
	r.lines = []line{{path.Join(p, "locks"), false}, {path.Join(p, "leases"), true}}
	r.most = leases
	return r
}

// claim is what an actor was granted: it holds the resource for as long as the context is alive.
type claim struct {
	resource *resource
	process  *process
	actor    string
	owner    int64 // claims of one owner do not exclude each other
	shared   bool
	follows  *claim // of the same owner, whose token it goes on with; nil if there is none
	path     string // of its node; "" if the recipe does not give it
	token    int64  // 0 for none
	context  context.Context
	robbed   time.Time // when its node was taken away; zero if it was not
}

func (c *claim) String() string {
	kind := "exclusive"
	if c.shared {
		kind = "shared"
	}
	node := zkpath.Normalize(path.Base(c.path))
	return fmt.Sprintf("%s to %s (%s, node %s, token %#x)", c.resource.path, c.actor, kind, node, c.token)
}

// isAlive reports whether whoever has the claim believes in it.
func (c *claim) isAlive() bool { return c.context.Err() == nil && !c.process.dead.Load() }
