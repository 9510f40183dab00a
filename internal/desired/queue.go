package desired

import (
	"math/bits"
	"math/rand/v2"
	"slices"
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
	toRead  []*Node // those with an action, by its kind when they came
	toWrite []*Node
	held    []*Node // those of toWrite that go first
	toWatch []*parent
	reads   int  // requests that were sent so far
	answers int  // those of them that have ended
	until   int  // number of the read that the nodes in held wait for
	writing int  // transactions under way
	paused  bool // nothing is sent until due
	due     time.Time
	later   []func() // requests to send next
	steps   int      // nodes at which plans have looked so far, for tests

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

// place is the queue in which a node with an action is. What is left of it in another one does not count.
type place uint8

const (
	nowhere place = iota
	inReads
	inWrites
	behindParent // in the list of a parent
)

// enqueue puts a node with an action into the queue of its kind. The caller holds mu.
func (r *Reconciler) enqueue(n *Node) {
	switch isRead := n.action == look || n.action == find; {
	case n.action == nothing || n.busy:
	case isRead && n.queued != inReads:
		n.queued, r.toRead = inReads, append(r.toRead, n)
	case !isRead && n.queued != inWrites: // behind a parent it is looked at anew
		n.queued, r.toWrite = inWrites, append(r.toWrite, n)
	}
}

// first returns the first node of a queue, nil if it is empty. The caller holds mu.
func (r *Reconciler) first(queue *[]*Node, at place) *Node {
	for ; len(*queue) > 0; drop(queue) {
		r.steps++
		n := (*queue)[0]
		switch {
		case n.queued != at:
		case n.busy || n.action == nothing || n.isGone():
			n.queued = nowhere
		default:
			return n
		}
	}
	return nil
}

// drop takes the first node out of a queue.
func drop(queue *[]*Node) { (*queue)[0], *queue = nil, (*queue)[1:] }

// answered ends the request of a node, and reports whether its answer counts: if not, the node is looked at again. The
// caller holds mu.
func (r *Reconciler) answered(n *Node) (counts bool) {
	r.ended(n)
	if n.isGone() {
		return false
	}
	if n.again {
		n.again = false
		r.want(n, look)
		return false
	}
	return true
}

// ended notes that the request of a node has ended, for which nodes below it may wait. The caller holds mu.
func (r *Reconciler) ended(n *Node) {
	n.busy = false
	r.resumeBelow(n)
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
		r.steps++
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

// pause looks at the node again after a pause, which grows with each. Events may have had the node looked at before the
// end of one: many in a moment, when others create and delete it. They do not prolong it. The caller holds mu.
func (r *Reconciler) pause(n *Node) {
	n.action = nothing
	end := r.after(pauseAfter(n.failures))
	if time.Now().Before(n.retryAt) && n.retryAt.Before(end) {
		return
	}
	n.retryAt = end
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

// after returns the end of a pause, a 32nd earlier at most. The pauses of many nodes end together, because each end has
// all nodes looked at.
func (r *Reconciler) after(pause time.Duration) time.Time {
	step := time.Duration(1) << max(bits.Len64(uint64(pause/32))-1, 0)
	return r.born.Add((time.Since(r.born) + pause).Truncate(step))
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
	maxBatches    = 8 // that are filled at once
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
	return r.planWrites(r.planReads(sends))
}

// planReads adds the reads that may be sent now. It looks at no more nodes than it reads: thousands may wait. The
// caller holds mu.
func (r *Reconciler) planReads(sends []func()) []func() {
	var reads []*Node // with one request
	for r.reads-r.answers < maxLooking {
		n := r.first(&r.toRead, inReads)
		if n == nil {
			break
		}
		isOne := n.action == find || n.blind || !r.sharesWatch(n.parent)
		if !isOne && len(reads) == 0 && r.reads-r.answers >= maxReading {
			break
		}
		drop(&r.toRead)
		n.queued = nowhere
		switch {
		case n.action == find:
			sends = append(sends, r.find(n))
		case isOne:
			sends = append(sends, r.lookOne(n))
		default:
			if reads = append(reads, n); len(reads) == maxOperations {
				sends, reads = append(sends, r.lookMany(reads)), nil
			}
		}
	}
	if len(reads) > 0 {
		sends = append(sends, r.lookMany(reads))
	}
	return sends
}

// planWrites adds the transactions that may be sent now, and the calls of providers before those. It looks at few more
// nodes than it writes. The caller holds mu.
func (r *Reconciler) planWrites(sends []func()) []func() {
	if r.answers < r.until && len(r.held)+len(r.toWrite) < maxOperations {
		return sends
	}
	var writes batches
	held := r.held
	r.held, r.until = nil, 0
	for r.writing < maxWriting && len(writes.list) < maxBatches {
		n := r.nextWrite(&held)
		if n == nil {
			break
		}
		switch {
		case n.preparing && n.action != remove: // it comes back behind that
		case r.awaitsParents(n):
		case n.calls && n.action != remove && !n.isPrepared():
			sends = append(sends, r.prepare(n))
		default:
			if full := writes.add(n); full != nil {
				sends = append(sends, r.write(full))
			}
		}
	}
	for _, b := range writes.list {
		waits := slices.ContainsFunc(b.nodes, func(n *Node) bool { return n.hold > r.answers })
		if r.writing < maxWriting && !waits {
			sends = append(sends, r.write(b))
			continue
		}
		for _, n := range b.nodes {
			n.queued, r.held, r.until = inWrites, append(r.held, n), max(r.until, n.hold)
		}
	}
	r.held = append(r.held, held...)
	return sends
}

// nextWrite takes the next node to be written out of held, or else of the queue. A node that is to be created follows
// the one above it at once, so that both travel together, and no create meets a missing parent. The caller holds mu.
func (r *Reconciler) nextWrite(held *[]*Node) *Node {
	queue := held
	n := r.first(queue, inWrites)
	if n == nil {
		queue = &r.toWrite
		n = r.first(queue, inWrites)
	}
	if n == nil {
		return nil
	}
	for above := n; above != nil && above.action == create; above = r.byPath[above.parent.path] {
		if above.queued == inWrites {
			n = above
		}
	}
	if n == (*queue)[0] {
		drop(queue)
	}
	n.queued = nowhere
	return n
}

// begin notes that a request of the node is under way. The caller holds mu.
func (r *Reconciler) begin(n *Node) {
	n.busy, n.again = true, false
}
