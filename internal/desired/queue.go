package desired

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// action is the next request for a node.
type action uint8

const (
	nothing action = iota
	look           // read the node
	find           // list the parent, for a sequential node whose create has no answer
	create
	set     // the data, at the known version
	replace // delete the known version and create
	remove  // delete the known version
	touch   // set the data at any version
)

// queue is the part of a reconciler with what has to be sent.
type queue struct {
	todo    []*Node // those with an action
	reads   int     // requests that were sent so far
	answers int     // those of them that have ended
	writing int     // transactions under way
	paused  bool    // nothing is sent until due
	due     time.Time
	later   []func() // requests to send next

	slowLook time.Time // of the next read of all nodes
}

// sendLater has the goroutine send a request. The caller holds mu.
func (r *Reconciler) sendLater(send func()) { r.later = append(r.later, send) }

// want makes a the next action of a node, or has it looked at again after the request that is under way. The caller
// holds mu.
func (r *Reconciler) want(n *Node, a action) {
	if n.busy {
		n.again = true
		return
	}
	if a == look && !n.named && n.uncertain {
		a = find
	} else if a == look && !n.named {
		a = create
		if n.removing {
			r.forget(n, nil)
			return
		}
	}
	n.action = a
	r.enqueue(n)
}

// enqueue puts a node with an action into the queue. The caller holds mu.
func (r *Reconciler) enqueue(n *Node) {
	if n.action != nothing && !n.queued && !n.busy {
		n.queued = true
		r.todo = append(r.todo, n)
	}
}

// answered ends the request of a node, and reports whether its answer counts: if not, the node is looked at again. The
// caller holds mu.
func (r *Reconciler) answered(n *Node) (counts bool) {
	n.busy = false
	if n.isGone() {
		return false
	}
	if n.again || r.client.SessionID() != r.session {
		n.again = false
		r.want(n, look)
		return false
	}
	return true
}

// wakeAt has the goroutine look at the pauses of the nodes at that time. The caller holds mu.
func (r *Reconciler) wakeAt(t time.Time) {
	if r.due.IsZero() || t.Before(r.due) {
		r.due = t
	}
}

// pauseOver looks at the nodes whose pause is over. The caller holds mu.
func (r *Reconciler) pauseOver(now time.Time) {
	r.due, r.paused = time.Time{}, false
	isSlow := !now.Before(r.slowLook)
	if isSlow {
		r.slowLook = now.Add(slowLook + rand.N(slowLook/10))
	}
	r.wakeAt(r.slowLook)
	for n := range r.nodes {
		switch {
		case isSlow && n.present && !n.removing && n.action == nothing && !n.busy && n.spec.Touch == 0:
			n.retryAt, n.blind = time.Time{}, false // by now it may be readable
			r.want(n, look)
		case n.retryAt.IsZero():
		case n.retryAt.After(now):
			r.wakeAt(n.retryAt)
		case n.present && !n.removing && n.action == nothing && n.spec.Touch > 0:
			n.retryAt = time.Time{}
			r.want(n, touch)
		default:
			n.retryAt = time.Time{}
			r.want(n, look)
		}
	}
}

// pause looks at the node again after a pause, which grows with each. The caller holds mu.
func (r *Reconciler) pause(n *Node) {
	n.action = nothing
	n.retryAt = time.Now().Add(pauseAfter(n.failures))
	n.failures++
	r.wakeAt(n.retryAt)
}

// refuse notes that the servers, or the owner of the node, refuse what is desired. The first time that is reported. The
// caller holds mu.
func (r *Reconciler) refuse(n *Node, err error) {
	n.refused = n.gen
	if n.setErr(err) {
		n.notify(Event{Type: Refused, Err: err})
	} else {
		n.notify(Event{}) // those who have asked again
	}
	r.pause(n)
}

// pauseAfter returns a pause, with jitter. failures counts the pauses before.
func pauseAfter(failures int) time.Duration {
	pause := min(firstPause<<min(failures, 16), lastPause)
	return pause + rand.N(pause)/2
}

const (
	firstPause = time.Second
	lastPause  = time.Minute
	// slowLook is the interval of reads of all nodes, up to a tenth longer. They find what no event shows: servers send
	// no events of a node that the client may not read at that moment, and none about the permission.
	slowLook = 5 * time.Minute
)

// Limits of the requests.
const (
	maxOperations = 100
	maxBytes      = 256 << 10 // of a transaction
	maxReading    = 4
	maxLooking    = 100 // single reads under way
	maxWriting    = 2
	maxRounds     = 8 // writes of the same data to a node in a second
)

// plan returns what has to be sent. The caller holds mu, and calls the funcs without it.
func (r *Reconciler) plan(now time.Time) (sends []func()) {
	if !r.due.IsZero() && !now.Before(r.due) {
		r.pauseOver(now)
	}
	if r.flight == nil || r.paused {
		return nil
	}
	if r.behind {
		return r.sync()
	}
	sends, r.later = r.watch(r.later), nil
	todo := r.todo
	r.todo = nil
	var writes batches
	var reads, ready []*Node
	for _, n := range todo {
		n.queued = false
		switch {
		case n.busy || n.action == nothing || n.isGone():
			continue
		case n.action == find:
			sends = append(sends, r.find(n))
			continue
		case n.action == look && (!r.sharesWatch(n.parent) || n.blind):
			if r.reads-r.answers < maxLooking {
				sends = append(sends, r.lookOne(n))
				continue
			}
		case n.action == look:
			if r.reads-r.answers < maxReading {
				if reads = append(reads, n); len(reads) == maxOperations {
					sends = append(sends, r.lookMany(reads))
					reads = nil
				}
				continue
			}
		case n.preparing && n.action != remove: // it comes back behind that
			continue
		case r.awaitsParents(n):
		case n.calls && n.action != remove && !n.isPrepared():
			sends = append(sends, r.prepare(n))
			continue
		case r.writing < maxWriting:
			ready = append(ready, n)
			continue
		}
		r.enqueue(n) // it has to wait
	}
	// A node follows the one above it at once, so that both travel together, and no create meets a missing parent.
	slices.SortFunc(ready, func(a, b *Node) int { return strings.Compare(a.path, b.path) })
	for _, n := range ready {
		if r.writing >= maxWriting {
			r.enqueue(n)
		} else if full := writes.add(n); full != nil {
			sends = append(sends, r.write(full))
		}
	}
	if len(reads) > 0 {
		sends = append(sends, r.lookMany(reads))
	}
	for _, b := range writes.list {
		waits := slices.ContainsFunc(b.nodes, func(n *Node) bool { return n.hold > r.answers })
		if r.writing < maxWriting && !waits {
			sends = append(sends, r.write(b))
			continue
		}
		for _, n := range b.nodes {
			r.enqueue(n)
		}
	}
	return sends
}

// begin notes that a request of the node is under way. The caller holds mu.
func (r *Reconciler) begin(n *Node) {
	n.busy, n.again = true, false
}
