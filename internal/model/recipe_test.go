package model

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// recipe is the machine of a recipe: its members, servers that lag, and faults.
type recipe struct {
	protocol
	members string // a letter for each; the protocol defines its meaning
	leases  int    // of a semaphore
	rounds  int8   // so often each member wants the recipe
	servers int8   // 1 or 2
	lag     int8   // so many transactions may be on their way to the servers
	faults  int8   // so many may come
	may     kinds  // of faults
	flaw    flaw   // what is broken on purpose
}

var _ machine[world] = (*recipe)(nil)

// protocol is the part of a recipe that differs from others. The members queue as in line_test.go.
type protocol interface {
	// kind is the kind of node with which a member queues.
	kind(m *recipe, i int8) int8
	// judge returns the result of a list for a member: whether it contains its node, and which place it waits for.
	judge(m *recipe, t *tree, w *world, i int8) (found bool, before int8)
	// granted is called when the line grants.
	granted(m *recipe, w *world, i int8)
	// answer takes an answer that is not the line's. t is the tree of the server, done the result of a write.
	answer(m *recipe, w *world, i int8, r request, t *tree, done bool)
	// changed is called when an event comes that is not the line's.
	changed(m *recipe, w *world, i int8, own bool)
	// suspended is called when the connection is lost.
	suspended(m *recipe, w *world, i int8)
	// resume is called when there is a connection again, with the same session.
	resume(m *recipe, w *world, i int8)
	// act takes a step of the member's own, such as a release. It reports whether there is one.
	act(m *recipe, w *world, i int8) bool
	// intact reports whether the nodes of a member that holds are there.
	intact(m *recipe, t *tree, w *world, i int8) bool
	// broken names a broken promise, "" for none.
	broken(m *recipe, w *world) string
}

// flaw is something broken on purpose, which the checker has to find.
type flaw int

const (
	sound             flaw = iota
	grantsWithoutList      // the event of the place before grants, if that was the only one
	watchesTwo             // the same, and the own place is watched as well
	findsBehind            // the search for a lost create runs on a server that lags
	createsTwice           // a lost create is retried without a search
	expiresFirst           // the servers end a session before its client's clock does
	keepsWatch             // a cancelled member leaves its watch
	keepsNode              // a cancelled member leaves its node
	readsAnew              // a downgrading writer queues with a new number
	leaseWithoutTurn       // a waiter for a lease has a node among the leases, with or without its turn
	takesUnchecked         // the transaction does not check the turn
	countsFirst            // the leases are counted before the list that shows the turn
	watchesLate            // a waiter for a lease lists first and watches then
	freshOutlives          // a latch that was granted leads after an outage without a list
	downgradesBlind        // a downgrading writer does not look for its writer's node
	trustsOldNode          // a list that shows the node of the member's earlier session grants
	losesWatch             // a new connection has no watches, and the member does not list
	missesEvent            // the same, but a new connection sets the watch again and does not say what was missed
)

// kinds is a set of kinds of faults.
type kinds int

const (
	cut      kinds = 1 << iota // a connection is lost, with the answers on their way
	expiry                     // the session clock of a client runs out
	pause                      // the servers end a session first: the process is stopped, or an operator does it
	crash                      // a client dies
	deletion                   // another client deletes a node
	wipe                       // another client deletes the whole line
	giveUp                     // a member cancels its wait
)

var kindNames = map[kinds]string{
	cut: "loses its connection", expiry: "finds its session clock run out", pause: "has its session ended by the servers",
	crash: "crashes", giveUp: "gives up",
}

// The kinds of steps.
const (
	aAct int8 = iota
	aServe
	aApply
	aDeliver
	aConnect
	aLearn
	aEnd
	aFault
	aDelete
	aWipe
)

func (m *recipe) size() int8 { return int8(len(m.members)) }

func (m *recipe) is(i int8, letters string) bool {
	return strings.IndexByte(letters, m.members[i]) >= 0
}

func (m *recipe) first() world {
	w := world{faults: m.faults}
	for i := range w.clients {
		c := &w.clients[i]
		c.own, c.before, c.watch, c.server = none, none, none, none
		if int8(i) < m.size() {
			c.wants = m.rounds
		}
	}
	return w
}

// next emits the steps of a state.
func (m *recipe) next(w *world, emit func(step, world)) {
	try := func(st step, do func(to *world) bool) {
		to := *w
		if do(&to) {
			m.settle(&to)
			emit(st, to)
		}
	}
	full := w.logged == m.lag
	for i := range m.size() {
		c := &w.clients[i]
		try(step{what: aAct, who: i}, func(to *world) bool { return m.act(m, to, i) })
		try(step{what: aServe, who: i}, func(to *world) bool { return m.serve(to, i) })
		if c.late {
			try(step{what: aDeliver, who: i}, func(to *world) bool {
				to.clients[i].late = false
				m.restart(to, i)
				return true
			})
		}
		if c.lingers && !full {
			try(step{what: aEnd, who: i}, func(to *world) bool {
				to.clients[i].lingers = false
				m.agree(to, txn{op: opEnd, client: i, old: true, done: true})
				return true
			})
		}
		if c.server == none && c.isBusy() {
			if c.over {
				try(step{what: aLearn, who: i}, func(to *world) bool { m.renew(to, i); return true })
			}
			for s := range m.servers {
				if !c.over && w.applied[s] >= c.seen {
					try(step{what: aConnect, who: i, arg: s}, func(to *world) bool {
						to.clients[i].server = s
						m.resume(m, to, i)
						m.rewatch(to, i)
						return true
					})
				}
			}
		}
	}
	for s := range m.servers {
		try(step{what: aApply, arg: s}, func(to *world) bool { return m.applyAt(to, s) })
	}
	if w.faults > 0 {
		m.nextFaults(w, func(st step, do func(to *world)) {
			to := *w
			to.faults--
			do(&to)
			m.settle(&to)
			st.fault = true
			emit(st, to)
		})
	}
}

// settle takes at once the steps that only the client itself sees: it queues, and removes its watches.
func (m *recipe) settle(w *world) {
	for i := range m.size() {
		c := &w.clients[i]
		for c.count > 0 && c.requests[0].op == opUnwatch && m.serve(w, i) {
		}
		if c.at == idle && c.wants > 0 && c.server != none {
			m.begin(w, i)
		}
	}
}

// isBusy reports whether the client has a use for a connection.
func (c *client) isBusy() bool { return c.at != idle || c.wants > 0 || c.count > 0 }

// nextFaults tries every fault that may come.
func (m *recipe) nextFaults(w *world, try func(st step, do func(to *world))) {
	full := w.logged == m.lag
	for i := range m.size() {
		c := &w.clients[i]
		fault := func(k kinds, possible bool, do func(to *world)) {
			if m.may&k != 0 && possible {
				try(step{what: aFault, who: i, arg: int8(bits.TrailingZeros(uint(k)))}, do)
			}
		}
		active := c.at != idle || c.count > 0
		fault(cut, active && c.server != none, func(to *world) { m.disconnect(to, i) })
		fault(expiry, active && !w.ending(i) && !m.is(i, "jJ"), func(to *world) { m.renew(to, i) })
		fault(pause, active && !w.ending(i) && !full, func(to *world) {
			m.agree(to, txn{op: opEnd, client: i, done: true})
			to.clients[i].over = true
		})
		fault(crash, c.at != idle && !w.ending(i), func(to *world) {
			to.renew(i)
			to.clients[i] = client{server: none, own: none, before: none, watch: none, lingers: true}
		})
		fault(giveUp, c.at != idle && !m.holds(c), func(to *world) { m.abandon(to, i) })
	}
	if full {
		return
	}
	for _, n := range w.head.all() {
		if m.may&deletion != 0 {
			try(step{what: aDelete, who: n.owner, arg: n.number}, func(to *world) {
				m.agree(to, txn{op: opDelete, client: n.owner, kind: n.kind, number: n.number, done: true})
			})
		}
	}
	if m.may&wipe != 0 && w.head.count > 0 {
		try(step{what: aWipe}, func(to *world) { m.agree(to, txn{op: opWipe, client: none, done: true}) })
	}
}

// agree makes the servers agree on a transaction. A holder whose node another client deletes gets the event later,
// which is excused.
func (m *recipe) agree(w *world, x txn) {
	before := w.head
	w.agree(x)
	if x.op == opCreate && x.kind == lease && m.is(x.client, "J") && !before.of(x.client, place, x.attempt) {
		w.clients[x.client].excused = true // Java does not look whether it still has its turn
	}
	if x.op < opEnd || x.op == opEnd && m.flaw == expiresFirst {
		return
	}
	for i := range m.size() {
		c := &w.clients[i]
		if (m.holds(c) || c.at == elected) && m.intact(m, &before, w, i) && !m.intact(m, &w.head, w, i) {
			c.excused = true
		}
	}
}

// grant makes a member a holder by what a server shows. What excused an earlier hold excuses this one no longer.
func (m *recipe) grant(w *world, i, phase int8) {
	w.clients[i].excused = false
	m.hold(w, i, phase)
}

// hold makes a member a holder. If its server still shows a deleted node, the member gets the event later.
func (m *recipe) hold(w *world, i, phase int8) {
	c := &w.clients[i]
	c.at = phase
	if c.server != none && !m.intact(m, &w.head, w, i) {
		seen := w.view(c.server)
		c.excused = c.excused || m.intact(m, &seen, w, i)
	}
}

// serve processes the next request of a client on its server. Requests behind a write wait for its answer.
func (m *recipe) serve(w *world, i int8) bool {
	c := &w.clients[i]
	if c.server == none || c.count == 0 || c.waiting || c.late || c.over {
		return false
	}
	if c.requests[0].op >= firstRead {
		r, t := c.pop(), w.view(c.server)
		c.seen = max(c.seen, w.applied[c.server])
		m.answerAll(w, i, r, &t, true)
		return true
	}
	if w.logged == m.lag {
		return false
	}
	r := c.pop()
	x := txn{op: r.op, client: i, kind: r.kind, number: r.number, attempt: r.attempt, done: true, awaited: true}
	switch r.op {
	case opCreate:
		x.number = w.number
		w.number++
	case opNothing:
		x.done = false
	case opTake:
		x.done = w.head.named(r.number) || m.flaw == takesUnchecked
	}
	c.waiting = true
	m.agree(w, x)
	return true
}

// applyAt has a server apply the next transaction, send the events to the watchers, and answer.
func (m *recipe) applyAt(w *world, s int8) bool {
	if w.applied[s] == w.logged {
		return false
	}
	for i := range m.size() {
		if w.clients[i].server == s && w.clients[i].late {
			return false
		}
	}
	x, before := w.log[w.applied[s]], w.view(s)
	w.applied[s]++
	after := w.view(s)
	for i := range m.size() {
		c := &w.clients[i]
		if c.server != s {
			continue
		}
		seen := c.seen
		c.seen = w.applied[s]
		gone := c.watch != none && !after.named(c.watch)
		own := c.watchOwn && !after.of(i, place, c.attempt)
		leases := c.watchAll && before.leases() != after.leases()
		if gone {
			name := c.watch
			c.watch = none
			if m.flaw == watchesTwo && own {
				c.watchOwn, c.late = false, true
			}
			if c.at == waiting && c.before == name {
				m.moved(w, i)
			}
		} else if own {
			c.watchOwn = false
			m.changed(m, w, i, true)
		}
		if leases {
			c.watchAll = false
			m.changed(m, w, i, false)
		}
		switch {
		case x.op == opEnd && x.client == i && !x.old:
			m.disconnect(w, i)
		case x.awaited && x.client == i:
			c.waiting = false
			m.answerAll(w, i, request{op: x.op, kind: x.kind, number: x.number, attempt: x.attempt}, &after, x.done)
		case !gone && !own && !leases:
			c.seen = seen
		}
	}
	w.advance(m.servers)
	return true
}

func (m *recipe) disconnect(w *world, i int8) {
	w.disconnect(i)
	m.suspended(m, w, i)
}

// rewatch sets the watch of a member again on a new connection. If the place is gone, the server sends the event that
// was missed. In the code: watches.frames of internal/wire.
func (m *recipe) rewatch(w *world, i int8) {
	c := &w.clients[i]
	if m.flaw == losesWatch {
		c.watch = none
	}
	t, name := w.view(c.server), c.watch
	if name == none || t.named(name) {
		return
	}
	c.watch = none
	if c.at == waiting && c.before == name && m.flaw != missesEvent {
		m.moved(w, i)
	}
}

// violation names a broken promise, "" for none.
func (m *recipe) violation(w *world) string {
	for i := range m.size() {
		c := &w.clients[i]
		stays := c.watch != none || c.watchAll || c.watchOwn && c.at == idle // a latch that leads watches its own node
		if (c.at == idle || c.at == holding) && c.count == 0 && !c.waiting && stays {
			return fmt.Sprintf("a watch of %c stays", 'A'+i)
		}
	}
	return m.broken(m, w)
}

// unfinished names the members that wait for ever, and the nodes and watches that are left.
func (m *recipe) unfinished(w *world) string {
	for i := range m.size() {
		if w.clients[i].isBusy() {
			return fmt.Sprintf("%c waits for ever", 'A'+i)
		}
	}
	if w.head.count > 0 {
		return "a node is left"
	}
	return ""
}

// encode counts the numbers of the nodes from 0, orders the members of a kind independently of their names, and the
// servers by their connected members.
func (m *recipe) encode(w *world, to []byte) []byte {
	var used uint64
	use := func(numbers ...int8) {
		for _, n := range numbers {
			if n != none {
				used |= 1 << n
			}
		}
	}
	useName := func(name int8) {
		if name != none {
			use(name & 31)
		}
	}
	for _, n := range w.base.all() {
		use(n.number)
	}
	for _, x := range w.log[:w.logged] {
		use(x.names())
	}
	for i := range m.size() {
		c := &w.clients[i]
		use(c.own)
		useName(c.before)
		useName(c.watch)
		for _, r := range c.requests[:c.count] {
			useName(r.name())
		}
	}
	rank := func(n int8) byte {
		if n == none {
			return 255
		}
		return byte(bits.OnesCount64(used & (1<<n - 1)))
	}
	rankOf := func(name int8) byte {
		if name == none {
			return 255
		}
		return byte(name>>5)<<6 | rank(name&31)
	}
	var codes [maxClients][10 + 3*maxRequests]byte
	var order, named [maxClients]int8
	for i := range m.size() {
		c := &w.clients[i]
		seen := c.seen
		if w.faults == 0 && c.server != none {
			seen = 0 // only a later connection needs it
		}
		code := append(codes[i][:0], m.members[i], rank(c.own), byte(c.at), rankOf(c.before), rankOf(c.watch),
			byte(c.wants), byte(seen), flags(c.excused, c.over, c.lingers, c.waiting, c.late, c.watchOwn, c.watchAll),
			flags(c.alone, c.fresh, c.roomy), byte(c.count))
		for _, r := range c.requests[:c.count] {
			code = append(code, byte(r.op)<<4|byte(r.kind), rankOf(r.name()), byte(c.attempt-r.attempt))
		}
		order[i] = i
	}
	slices.SortStableFunc(order[:m.size()], func(a, b int8) int { return slices.Compare(codes[a][:], codes[b][:]) })
	var servers [2]byte // their names
	count := byte(0)
	for at, i := range order[:m.size()] {
		named[i] = int8(at)
		to = append(to, codes[i][:]...)
		s := w.clients[i].server
		if s == none {
			to = append(to, 0)
			continue
		}
		if servers[s] == 0 {
			count++
			servers[s] = count
		}
		to = append(to, servers[s])
	}
	applied := w.applied
	if servers[0] == 2 || servers[1] == 1 || count == 0 && applied[0] > applied[1] {
		applied[0], applied[1] = applied[1], applied[0]
	}
	to = append(to, byte(w.faults), byte(applied[0]), byte(applied[1]), byte(w.base.count), byte(w.logged))
	for _, n := range w.base.all() {
		age := byte(w.clients[n.owner].attempt - n.attempt)
		to = append(to, byte(n.kind), rank(n.number), byte(named[n.owner]), age, flags(n.old))
	}
	for _, x := range w.log[:w.logged] {
		to = append(to, byte(x.op), byte(x.kind), rank(x.names()), flags(x.old, x.done, x.awaited))
		if x.client != none {
			to = append(to, byte(named[x.client]), byte(w.clients[x.client].attempt-x.attempt))
		}
	}
	return to
}

func flags(all ...bool) (b byte) {
	for i, f := range all {
		if f {
			b |= 1 << i
		}
	}
	return b
}

// describe describes a step and the members after it.
func (m *recipe) describe(from *world, st step, to *world) string {
	name := string(rune('A' + st.who))
	said := ""
	switch st.what {
	case aAct:
		said = name + " goes on by itself"
	case aServe:
		r := from.clients[st.who].requests[0]
		said = fmt.Sprintf("server %d answers %s: %s", from.clients[st.who].server, name, opNames[r.op])
		if r.op < firstRead {
			said = fmt.Sprintf("the servers agree on the %s of %s", opNames[r.op], name)
		}
	case aApply:
		x := from.log[from.applied[st.arg]]
		said = fmt.Sprintf("server %d applies the %s", st.arg, opNames[x.op])
		if x.client != none {
			said += fmt.Sprintf(" of %c", 'A'+x.client)
		}
	case aDeliver:
		said = name + " hears that its own place is gone"
	case aConnect:
		said = fmt.Sprintf("%s connects to server %d", name, st.arg)
	case aLearn:
		said = name + " learns that its session has ended"
	case aEnd:
		said = "the servers agree to end the old session of " + name
	case aFault:
		said = "FAULT: " + name + " " + kindNames[1<<st.arg]
	case aDelete:
		said = fmt.Sprintf("FAULT: an operator deletes node %d of %s", st.arg, name)
	case aWipe:
		said = "FAULT: an operator deletes the whole line"
	}
	for i := range m.size() {
		if a, b := from.clients[i].at, to.clients[i].at; a != b {
			said += fmt.Sprintf("; %c: %s", 'A'+i, phaseNames[b])
		}
	}
	return said + fmt.Sprintf("   %v", summary(to.head.all()))
}

// summary is the tree that the servers have agreed on.
type summary []node

func (s summary) String() string {
	names := []string{}
	for _, n := range s {
		name := fmt.Sprintf("%s%d:%c", []string{"place", "reader", "lease"}[n.kind], n.number, 'A'+n.owner)
		if n.old {
			name += "(old)"
		}
		names = append(names, name)
	}
	return "[" + strings.Join(names, " ") + "]"
}
