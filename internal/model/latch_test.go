package model

// latch is an election. Its members are "o", which do not lead without a connection (the standard policy), and "s",
// which lead on until the session ends. In the code: LeaderLatch.
type latch struct{ mutex }

// granted is the end of Queue.Acquire in LeaderLatch.run. What follows is another step.
func (latch) granted(m *recipe, w *world, i int8) { m.grant(w, i, elected) }

// act begins to lead, or closes. In the code: LeaderLatch.lead.
func (latch) act(m *recipe, w *world, i int8) bool {
	c := &w.clients[i]
	switch {
	case c.at == elected && c.server != none:
		m.hold(w, i, holding)
		m.look(w, i)
	case c.at == holding:
		m.abandon(w, i)
	default:
		return false
	}
	return true
}

// look watches the latch's node and lists. In the code: LeaderLatch.isFirst.
func (m *recipe) look(w *world, i int8) { w.clients[i].send(request{op: opOwn}, request{op: opList}) }

func (latch) answer(m *recipe, w *world, i int8, r request, t *tree, _ bool) {
	c := &w.clients[i]
	if c.at != holding && c.at != looking {
		return
	}
	switch r.op {
	case opOwn:
		if !c.watchOwn {
			m.restart(w, i)
		}
	case opList:
		found, before := m.judge(m, t, w, i)
		if !found || before != none {
			m.restart(w, i)
			return
		}
		m.grant(w, i, holding)
	}
}

// changed reads the line again after an event for the latch's node.
func (latch) changed(m *recipe, w *world, i int8, _ bool) {
	if c := &w.clients[i]; c.at == holding || c.at == looking {
		m.look(w, i)
	}
}

// suspended ends leadership at once. In the code: LeaderLatch.setErrorState.
func (latch) suspended(m *recipe, w *world, i int8) {
	c := &w.clients[i]
	if c.at == looking || m.is(i, "o") && (c.at == holding || c.at == elected) {
		c.fresh = c.at == elected && m.flaw == freshOutlives
		c.at, c.excused = suspended, false
	}
}

// resume reads the line before the latch leads again.
func (l latch) resume(m *recipe, w *world, i int8) {
	switch c := &w.clients[i]; c.at {
	case suspended:
		c.at = looking
		if c.fresh {
			m.hold(w, i, holding)
		}
		m.look(w, i)
	case holding:
		m.look(w, i)
	default:
		l.mutex.resume(m, w, i)
	}
}
