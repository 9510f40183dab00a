package model

import (
	"fmt"
	"slices"
)

// semaphore has members that want one lease, "1", or two, "2", and Java's, which want one, "J". They queue for
// the turn. The member with the turn takes leases. In the code: InterProcessSemaphoreV2.
type semaphore struct{ mutex }

// wanted returns how many leases a member wants.
func (m *recipe) wanted(i int8) int {
	if m.members[i] == '2' {
		return 2
	}
	return 1
}

// taken counts the leases of all nodes.
func (m *recipe) taken(t *tree) (count int) {
	for _, n := range t.all() {
		if n.kind == lease {
			count += m.wanted(n.owner)
		}
	}
	return count
}

// room reports whether there are leases for a member.
func (m *recipe) room(t *tree, i int8) bool { return m.taken(t)+m.wanted(i) <= m.leases }

// judge makes members wait for the place right before theirs.
func (semaphore) judge(m *recipe, t *tree, w *world, i int8) (found bool, before int8) {
	line := slices.DeleteFunc(slices.Clone(t.all()), func(n node) bool { return n.kind == lease })
	return m.firstAmong(w, i, line)
}

// granted is the turn. The count travels with the list in the code. Here it comes behind it, at once or later.
func (semaphore) granted(m *recipe, w *world, i int8) {
	c := &w.clients[i]
	if m.is(i, "J") {
		m.addLease(w, i)
		return
	}
	if m.flaw == countsFirst && c.roomy {
		c.at = taking
		c.send(request{op: opTake, number: c.own})
		return
	}
	c.at = counting
	c.send(request{op: opCount})
}

// addLease adds a node among the leases before there is room, as Java does.
func (m *recipe) addLease(w *world, i int8) {
	c := &w.clients[i]
	c.at = adding
	c.send(request{op: opCreate, kind: lease}, request{op: opWatchLeases})
}

func (semaphore) answer(m *recipe, w *world, i int8, r request, t *tree, done bool) {
	c := &w.clients[i]
	own := t.of(i, lease, c.attempt)
	switch {
	case m.flaw == countsFirst && r.op == opCount && (c.at == creating || c.at == listing):
		c.roomy = m.room(t, i)
	case c.at == counting && r.op == opCount && !m.room(t, i):
		if m.flaw == leaseWithoutTurn {
			m.addLease(w, i)
			return
		}
		c.send(request{op: opWatchLeases})
	case c.at == counting && r.op == opWatchLeases && (!m.room(t, i) || m.flaw == watchesLate):
		c.at = leaseWait
	case c.at == counting && (r.op == opCount || r.op == opWatchLeases):
		c.at = taking // a watch goes with the transaction
		c.send(request{op: opTake, number: c.own})
	case c.at == taking && r.op == opTake && done, c.at == retaking && r.op == opFindLeases && own:
		m.grant(w, i, holding)
	case c.at == taking && r.op == opTake:
		m.restart(w, i)
	case c.at == retaking && r.op == opFindLeases:
		c.at = taking
		c.send(request{op: opTake, number: c.own})
	case c.at == adding && (r.op == opFindLeases || r.op == opWatchLeases) && !own:
		if c.watchAll {
			c.send(request{op: opUnwatch})
		}
		m.addLease(w, i)
	case c.at == adding && r.op == opFindLeases:
		c.send(request{op: opWatchLeases})
	case c.at == adding && r.op == opWatchLeases && m.taken(t) > m.leases:
		c.at = added
	case c.at == adding && r.op == opWatchLeases:
		c.send(request{op: opUnwatch}, request{op: opLeave, kind: place})
		m.hold(w, i, holding)
	}
}

// changed lists the leases again.
func (semaphore) changed(m *recipe, w *world, i int8, _ bool) {
	c := &w.clients[i]
	switch c.at {
	case leaseWait:
		c.at = counting
		c.send(request{op: opWatchLeases})
	case added:
		c.at = adding
		c.send(request{op: opWatchLeases})
	}
}

func (s semaphore) resume(m *recipe, w *world, i int8) {
	c := &w.clients[i]
	switch c.at {
	case counting, leaseWait:
		m.list(w, i)
	case taking, retaking:
		c.at = retaking
		c.send(request{op: opNothing}, request{op: opFindLeases})
	case adding, added:
		c.at = adding
		c.send(request{op: opNothing}, request{op: opFindLeases})
	default:
		s.mutex.resume(m, w, i)
	}
}

func (semaphore) intact(_ *recipe, t *tree, w *world, i int8) bool {
	return t.of(i, lease, w.clients[i].attempt)
}

// broken finds more held leases than exist.
func (semaphore) broken(m *recipe, w *world) string {
	held := 0
	for i := range m.size() {
		if c := &w.clients[i]; m.holds(c) && !c.excused {
			held += m.wanted(i)
		}
	}
	if held > m.leases {
		return fmt.Sprintf("%d leases of %d are held", held, m.leases)
	}
	return ""
}
