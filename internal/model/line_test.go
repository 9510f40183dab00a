package model

import (
	"fmt"
	"slices"
)

// The phases of a client.
const (
	idle        int8 = iota
	creating         // the create and the first list travel
	finding          // a create whose answer was lost
	listing          // the line
	watching         // the watch of the place before travels
	waiting          // for its event
	holding          // a lock, a lease, leadership
	downgrading      // a writer creates its reader's node
	holdingBoth      // it is a writer and a reader
	reading          // it was a writer and is a reader
	counting         // the leases
	leaseWait        // for an event of the leases
	taking           // the transaction travels
	retaking         // its answer was lost
	adding           // its node among the leases travels: Java, and what is broken on purpose
	added            // it is there: it waits until there are not too many
	elected          // a latch that the line has granted leadership, and that does not lead yet
	suspended        // a latch without a connection
	looking          // and with one again, at the line
)

var phaseNames = []string{
	"idle", "creates and lists", "looks for its node", "lists", "sets its watch", "waits", "HOLDS", "downgrades",
	"WRITES AND READS", "READS", "counts the leases", "waits for a lease", "takes a lease", "looks for its lease",
	"adds its lease", "waits with a lease's node", "is elected", "is suspended", "looks at the line",
}

// begin queues. In the code: Queue.AcquireOnce.
func (m *recipe) begin(w *world, i int8) {
	c := &w.clients[i]
	c.attempt++
	c.own, c.before, c.excused, c.alone, c.fresh, c.roomy = none, none, false, false, false, false
	m.create(w, i)
}

// create sends the create and the first list together.
func (m *recipe) create(w *world, i int8) {
	c := &w.clients[i]
	c.at = creating
	c.send(request{op: opCreate, kind: m.kind(m, i)})
	m.sendList(c)
}

// list lists the line once more. In the code: Queue.list.
func (m *recipe) list(w *world, i int8) {
	c := &w.clients[i]
	c.at, c.before = listing, none
	m.sendList(c)
}

func (m *recipe) sendList(c *client) {
	if m.flaw == countsFirst {
		c.send(request{op: opCount})
	}
	c.send(request{op: opList})
}

// answerAll takes an answer of a server. It ignores answers to a cancelled attempt.
func (m *recipe) answerAll(w *world, i int8, r request, t *tree, done bool) {
	c := &w.clients[i]
	switch r.op { // these requests took effect, even if the attempt is cancelled
	case opWatch:
		if done = t.named(r.number); done {
			c.watch = r.number
		}
		c.watchOwn = m.flaw == watchesTwo && t.of(i, m.kind(m, i), c.attempt)
	case opUnwatch:
		c.watch, c.watchOwn, c.watchAll = none, false, false
		return
	case opOwn:
		c.watchOwn = t.of(i, place, c.attempt)
	case opWatchLeases:
		c.watchAll = true
	}
	if r.attempt != c.attempt || c.at == idle {
		return
	}
	switch {
	case r.op == opCreate && c.at == creating:
		c.own = r.number
	case r.op == opFind && c.at == finding:
		m.found(w, i, t)
	case r.op == opList && (c.at == creating || c.at == listing):
		m.judged(w, i, t)
	case r.op == opWatch && c.at == watching:
		if !done {
			m.list(w, i)
			return
		}
		c.at = waiting
	default:
		m.answer(m, w, i, r, t, done)
	}
}

// found continues after the search for the node of a lost create. A node of an earlier session is not adopted. In the
// code: createOp.adopt.
func (m *recipe) found(w *world, i int8, t *tree) {
	c := &w.clients[i]
	at := slices.IndexFunc(t.all(), func(n node) bool {
		return n.owner == i && n.attempt == c.attempt && n.kind == m.kind(m, i)
	})
	switch {
	case at < 0:
		m.create(w, i)
	case t.nodes[at].old:
		m.restart(w, i)
	default:
		c.own = t.nodes[at].number
		m.list(w, i)
	}
}

// judged continues after a list of the line. In the code: Queue.await.
func (m *recipe) judged(w *world, i int8, t *tree) {
	c := &w.clients[i]
	found, before := m.judge(m, t, w, i)
	switch {
	case !found:
		m.restart(w, i)
	case before == none:
		m.granted(m, w, i)
	default:
		c.at, c.before = watching, before
		c.send(request{op: opWatch, number: before})
	}
}

// moved continues when the place before is gone. In the code: the event in Queue.await.
func (m *recipe) moved(w *world, i int8) {
	c := &w.clients[i]
	if c.alone && (m.flaw == grantsWithoutList || m.flaw == watchesTwo) {
		m.granted(m, w, i)
		return
	}
	m.list(w, i)
}

// leave deletes the nodes of the attempt, and takes the watches back.
func (m *recipe) leave(w *world, i int8) {
	c := &w.clients[i]
	if c.watches() && m.flaw != keepsWatch {
		c.send(request{op: opUnwatch})
	}
	if m.flaw != keepsNode {
		c.send(request{op: opLeave, kind: every})
	}
	c.at, c.own, c.before = idle, none, none
}

// restart queues again after the loss of the node or the session. In the code: Queue.Acquire after ErrNodeLost.
func (m *recipe) restart(w *world, i int8) { m.leave(w, i) }

// abandon cancels the attempt. In the code: the end of the context of Queue.AcquireOnce.
func (m *recipe) abandon(w *world, i int8) {
	m.leave(w, i)
	w.clients[i].wants--
}

// renew ends a client's session. The client loses what it holds. In the line it goes on where it was: a list of the
// next session shows that its node is gone, or belongs to an earlier session. In the code: Queue.await.
func (m *recipe) renew(w *world, i int8) {
	c := &w.clients[i]
	w.renew(i)
	switch {
	case c.at == idle || c.inLine():
	case m.holds(c):
		m.abandon(w, i)
	case m.is(i, "J") && (c.at == adding || c.at == added): // it goes on where it was
	default:
		m.restart(w, i)
	}
}

// inLine reports whether the client waits for its turn.
func (c *client) inLine() bool { return c.at >= creating && c.at <= waiting }

func (m *recipe) holds(c *client) bool {
	return c.at == holding || c.at == downgrading || c.at == holdingBoth || c.at == reading
}

// mutex is a lock with one holder. Its members are "o", ours, and "j", Java's. They take the same steps, but Java's
// have no session clock. In the code: InterProcessMutex.
type mutex struct{}

func (mutex) kind(*recipe, int8) int8 { return place }

// judge waits for the place right before the member's. In the code: waitqueue.First.
func (mutex) judge(m *recipe, t *tree, w *world, i int8) (found bool, before int8) {
	return m.firstAmong(w, i, t.all())
}

// firstAmong waits for the last of the places before the member's. In the code: waitqueue.FirstAmong.
func (m *recipe) firstAmong(w *world, i int8, others []node) (found bool, before int8) {
	c := &w.clients[i]
	before = none
	var last, ahead int8
	for _, n := range others {
		switch {
		case n.owner == i && n.number == c.own:
			found = found || !n.old || m.flaw == trustsOldNode // in the code: Contender.isOf
		case n.number < c.own:
			if ahead++; before == none || n.number > last {
				before, last = n.name(), n.number
			}
		}
	}
	c.alone = ahead == 1
	return found, before
}

func (mutex) granted(m *recipe, w *world, i int8) { m.grant(w, i, holding) }

func (mutex) answer(*recipe, *world, int8, request, *tree, bool) {}

func (mutex) changed(m *recipe, w *world, i int8, _ bool) { // the flaw that watches two
	if w.clients[i].at != idle && !m.holds(&w.clients[i]) {
		m.list(w, i)
	}
}

func (mutex) suspended(*recipe, *world, int8) {}

// resume continues on a new connection. It searches for the node of a create, after a transaction
// without changes that makes the server catch up. A member whose read of the line was lost lists, and so does a waiter
// whose watch has ended with its session. Any other waiter does nothing: its watch is set again. In the code:
// builders.createOp.find, Queue.list, waitqueue.NewEndWatcher.
func (mutex) resume(m *recipe, w *world, i int8) {
	c := &w.clients[i]
	switch c.at {
	case creating, finding:
		switch {
		case c.own != none:
			m.list(w, i)
		case m.flaw == createsTwice:
			m.create(w, i)
		case m.flaw == findsBehind:
			c.at = finding
			c.send(request{op: opFind})
		default:
			c.at = finding
			c.send(request{op: opNothing}, request{op: opFind})
		}
	case listing, watching:
		m.list(w, i)
	case waiting:
		if c.watch == none {
			m.list(w, i)
		}
	}
}

// act releases.
func (mutex) act(m *recipe, w *world, i int8) bool {
	if w.clients[i].at != holding {
		return false
	}
	m.abandon(w, i)
	return true
}

func (mutex) intact(_ *recipe, t *tree, w *world, i int8) bool {
	return t.of(i, place, w.clients[i].attempt)
}

// broken finds two holders.
func (mutex) broken(m *recipe, w *world) string {
	holder := none
	for i := range m.size() {
		c := &w.clients[i]
		if !m.holds(c) || c.excused {
			continue
		}
		if holder != none {
			return fmt.Sprintf("%c and %c hold at once", 'A'+holder, 'A'+i)
		}
		holder = i
	}
	return ""
}
