package model

import "fmt"

// readWriteLock has writers, "w", readers, "r", and writers that read on when they have written, "d". Java's readers,
// "j", wait for the first writer before them, ours for the last. In the code: InterProcessReadWriteLock.
type readWriteLock struct{ mutex }

func (readWriteLock) kind(m *recipe, i int8) int8 {
	if m.is(i, "rj") {
		return reader
	}
	return place
}

// judge makes writers wait for all places before theirs, and readers for writers.
func (readWriteLock) judge(m *recipe, t *tree, w *world, i int8) (found bool, before int8) {
	if m.is(i, "wd") {
		return m.firstAmong(w, i, t.all())
	}
	var rivals []node
	for _, n := range t.all() {
		if n.kind == place || n.owner == i {
			rivals = append(rivals, n)
		}
	}
	if found, before = m.firstAmong(w, i, rivals); before != none && m.is(i, "j") {
		before = rivals[0].name()
	}
	return found, before
}

// answer continues a downgrade. In the code: InterProcessReadWriteLock.downgrade.
func (readWriteLock) answer(m *recipe, w *world, i int8, r request, t *tree, _ bool) {
	c := &w.clients[i]
	if c.at != downgrading {
		return
	}
	hasRead := t.of(i, reader, c.attempt)
	switch {
	case r.op == opFind && !hasRead:
		m.readOn(w, i)
	case r.op == opFind:
		c.send(request{op: opList})
	case r.op == opList && hasRead && (t.of(i, place, c.attempt) || m.flaw == downgradesBlind):
		m.grant(w, i, holdingBoth)
	case r.op == opList:
		m.abandon(w, i)
	}
}

// readOn creates a reader's node with the number of the writer's.
func (m *recipe) readOn(w *world, i int8) {
	c := &w.clients[i]
	c.at = downgrading
	if m.flaw == readsAnew {
		c.send(request{op: opCreate, kind: reader}, request{op: opList})
		return
	}
	c.send(request{op: opCreateAt, kind: reader, number: c.own}, request{op: opList})
}

func (rw readWriteLock) resume(m *recipe, w *world, i int8) {
	c := &w.clients[i]
	if c.at == downgrading {
		c.send(request{op: opNothing}, request{op: opFind})
		return
	}
	rw.mutex.resume(m, w, i)
}

// act releases. A downgrading writer acquires the read lock first, and then releases one lock after the other.
func (readWriteLock) act(m *recipe, w *world, i int8) bool {
	c := &w.clients[i]
	switch {
	case c.at == holding && m.is(i, "d") && c.server != none:
		m.readOn(w, i)
	case c.at == holdingBoth:
		c.send(request{op: opLeave, kind: place})
		m.hold(w, i, reading)
	case c.at == holding || c.at == reading:
		m.abandon(w, i)
	default:
		return false
	}
	return true
}

func (readWriteLock) intact(m *recipe, t *tree, w *world, i int8) bool {
	c := &w.clients[i]
	switch c.at {
	case holdingBoth:
		return t.of(i, place, c.attempt) && t.of(i, reader, c.attempt)
	case reading:
		return t.of(i, reader, c.attempt)
	}
	return t.of(i, m.kind(m, i), c.attempt)
}

// broken finds a second holder beside a writer.
func (readWriteLock) broken(m *recipe, w *world) string {
	for i := range m.size() {
		for k := range m.size() {
			a, b := &w.clients[i], &w.clients[k]
			reads := a.at == reading || a.at == holding && m.is(i, "rj")
			if i != k && m.holds(a) && m.holds(b) && !a.excused && !b.excused && !reads {
				return fmt.Sprintf("%c holds while %c writes", 'A'+k, 'A'+i)
			}
		}
	}
	return ""
}
