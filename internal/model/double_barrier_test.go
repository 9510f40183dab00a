package model

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// doubleBarrier is the machine of a double barrier: one server, members that enter and leave, and faults. Names are in
// the order of the members. In the code: DistributedDoubleBarrier.
type doubleBarrier struct {
	members  int8
	quorum   int8 // so many open the barrier
	rounds   int8 // how many times each member wants to enter
	faults   int8 // so many may come
	may      kinds
	leftover bool // a crash has left ready behind
	flaw     barrierFlaw
}

var _ machine[barrierWorld] = (*doubleBarrier)(nil)

// barrierFlaw is something broken on purpose, which the checker has to find.
type barrierFlaw int

const (
	soundBarrier     barrierFlaw = iota
	joinsUnseen                  // a late member enters without joining
	joinsTheGone                 // a late member joins even if no member is inside
	passesOldReady               // a late member enters even if no member is inside
	clearsAtOnce                 // every member that sees an old ready deletes it, not only the oldest
	clearsAnyReady               // the old ready is deleted whatever its version
	opensUnchecked               // ready is created whether the own node is there or not
	endsUnchecked                // the last deletes ready whatever its version
	endsByName                   // the last deletes ready whether its own node is there or not
	endsAgainByName              // a member that finds no other behind the lowest deletes ready by its name
	takesDeathForEnd             // a member takes the deletion of the lowest for the end
	waitsForYounger              // a member without a node waits for all present members
	endsUnseen                   // a member that gives up the end deletes ready, though a late member has joined
	trustsOldSession             // the last waits though its session has ended, and its node is about to
	countsTheGone                // a list with ready is counted, though ready has gone since
	trustsOldList                // a deleted listed member is skipped, though a late member may have joined it
	watchesYounger               // a watcher of the lowest takes a member that entered again for it
	leavesUnchecked              // a member that waits for the lowest leaves without a check of its node
)

// barrierNode is the node of a member.
type barrierNode struct {
	there, signed bool
	stale         bool // its session has ended for its owner, and not for the server
	born, came    int8 // it was created anew when its member signed up, and first
}

// readyState is the node ready.
type readyState struct {
	there         bool
	born, version int8
	dead          int8 // the transaction since which no member is in, or ready is gone; 0 if a member is in
}

// barrierWorld is a state. It is a plain value; a copy is another state.
type barrierWorld struct {
	zxid, pzxid int8 // the newest transaction, the newest change of the children
	ready       readyState
	nodes       [maxClients]barrierNode
	faults      int8
	attendees   [maxClients]attendee
	bad         string // a promise that is broken
}

// attendee is a member: its phase, its knowledge, and its connection.
type attendee struct {
	at        int8 // one of the phases below
	wants     int8
	connected bool
	ended     bool // the server has ended its session, and it does not know
	renewed   bool // it has another session than the one that created its node
	lost      bool // its node has gone with its session, in this round
	gone      bool // it has crashed

	born        int8 // its node
	seen        int8 // a set of members: those listed
	listed      int8 // the newest change then
	listedReady bool
	seenReady   readyState // behind the list
	someoneIn   bool       // one of those read is in
	in, inCame  int8       // the first of them, and when its node was created first
	vanished    bool       // one of them is gone
	oldest      int8       // of those read
	oldestBorn  int8
	newest      int8 // bound of its round
	round       int8 // the ready that has let it in; for the promises alone
	known       int8 // a set of members of its round
	version     int8 // of ready, as the last counts
	watchReady  bool
	watched     int8 // a member whose node it watches, none for none
	there       bool // the watched node was there
	watchedBorn int8
	created     bool // it has heard that ready was created
	woken       bool // it has heard of something else
	over        bool // it has heard that the data of the lowest has changed
	alone       bool // it has seen that only the end is left
	open        bool // the ready of its round is there
	learned     bool // it has the list behind the opening

	requests [8]barrierRequest
	count    int8
}

type barrierRequest struct{ op, arg int8 }

// The phases of a member.
const (
	outside       int8 = iota
	entering           // its look travels
	readyWait          // for ready
	allThere           // it has seen all, and leaves it to the last for a moment
	opening            // its transaction travels
	readingOthers      // it has come late
	signing
	clearing
	oldestWatch // travels
	oldestWait
	inside
	learning    // the list behind the opening was lost, or travels
	goingFirst  // its deletion and the watch of the lowest travel
	lowestWait  // for the lowest
	goingLast   // its watch of the highest and the list travel
	highestWait // for the highest
	ending      // its last transaction travels
	versioning  // it reads the version of ready
	removingOwn // then it waits for the others
	othersLook  // it reads ready and lists
	othersWatch // it watches one of them
	othersWait
	cleaning     // it has given up
	cleaningLast // it has given up the end
)

var barrierPhases = []string{
	"is outside", "looks", "waits for ready", "sees all", "opens", "reads the others", "signs up", "clears",
	"watches the oldest",
	"waits for the oldest", "IS IN", "lists", "goes first", "waits for the lowest", "goes last", "waits for the highest",
	"ends the round",
	"reads the version", "deletes its node", "looks for others", "watches another", "waits for another", "cleans up",
	"cleans up with ready",
}

// The requests.
const (
	bRemove      int8 = iota // deletes the own node
	bCreate                  // creates it
	bList                    // lists the barrier
	bExists                  // reads and watches ready
	bOpen                    // [check own, create ready]
	bRead                    // reads the node of a member
	bSign                    // [check another, setData ready, delete own, create own, setData own]
	bClear                   // [check own, delete ready at a version]
	bWatch                   // reads and watches the node of a member, if it is there
	bGo                      // [check ready, check the lowest, delete own]
	bEnd                     // [delete ready at a version, setData own, delete own]
	bVersion                 // reads ready
	bReady                   // reads and watches ready, if it is there
	bLearn                   // lists behind the opening
	bDeleteReady             // by name: for what is broken on purpose
)

var barrierRequests = []string{
	"delete own", "create own", "list", "watch of ready", "create ready", "read of", "signature",
	"delete of the old ready",
	"watch of", "delete own while ready is there", "delete ready and own", "version of ready", "watch of ready",
	"list behind ready",
	"delete ready",
}

func (m *doubleBarrier) first() barrierWorld {
	w := barrierWorld{faults: m.faults}
	if m.leftover {
		w.zxid, w.pzxid, w.ready = 1, 1, readyState{there: true, born: 1, dead: 1}
	}
	for i := range w.attendees[:m.members] {
		w.attendees[i] = attendee{wants: m.rounds, connected: true, watched: none, oldest: none}
	}
	m.settle(&w)
	return w
}

// next emits the steps of a state.
func (m *doubleBarrier) next(w *barrierWorld, emit func(step, barrierWorld)) {
	if w.bad != "" {
		return
	}
	try := func(st step, possible bool, do func(to *barrierWorld)) {
		if possible {
			to := *w
			do(&to)
			m.settle(&to)
			emit(st, to)
		}
	}
	for i := range m.members {
		c := &w.attendees[i]
		if c.gone {
			try(step{what: aEnd, who: i}, w.nodes[i].there, func(to *barrierWorld) { to.drop(i) })
			continue
		}
		try(step{what: aAct, who: i}, c.at == allThere && c.connected, func(to *barrierWorld) { m.act(to, i) })
		try(step{what: aServe, who: i}, c.connected && c.count > 0, func(to *barrierWorld) { m.serve(to, i) })
		try(step{what: aConnect, who: i}, !c.connected, func(to *barrierWorld) { m.connect(to, i) })
		try(step{what: aEnd, who: i}, w.nodes[i].there && w.nodes[i].stale, func(to *barrierWorld) { to.drop(i) })
		if w.faults > 0 {
			m.nextFaults(w, i, func(k kinds, possible bool, do func(to *barrierWorld)) {
				st := step{fault: true, what: aFault, who: i, arg: int8(bits.TrailingZeros(uint(k)))}
				try(st, possible && m.may&k != 0, func(to *barrierWorld) { to.faults--; do(to) })
			})
		}
	}
}

// settle takes the members' own steps at once: their requests may wait.
func (m *doubleBarrier) settle(w *barrierWorld) {
	w.recordEmpty()
	for i := range m.members {
		for w.bad == "" && m.canAct(&w.attendees[i]) {
			m.act(w, i)
		}
	}
}

// nextFaults tries the faults of a member.
func (m *doubleBarrier) nextFaults(
	w *barrierWorld, i int8, fault func(k kinds, possible bool, do func(to *barrierWorld)),
) {
	c := &w.attendees[i]
	active := c.at != outside
	fault(cut, active && c.connected, func(to *barrierWorld) { m.lose(to, i) })
	fault(cut, c.connected && c.count > 0, func(to *barrierWorld) { // the answer is lost
		before := to.attendees[i]
		m.serve(to, i)
		to.attendees[i] = before
		m.lose(to, i)
	})
	fault(pause, active && c.connected && w.nodes[i].there && !w.nodes[i].stale, func(to *barrierWorld) {
		to.drop(i)
		m.lose(to, i)
		to.attendees[i].ended, to.attendees[i].lost = true, true
	})
	fault(expiry, active && c.connected && w.nodes[i].there && !w.nodes[i].stale, func(to *barrierWorld) {
		to.nodes[i].stale = true
		m.lose(to, i)
		to.attendees[i].ended, to.attendees[i].lost = true, true
	})
	fault(crash, active, func(to *barrierWorld) {
		to.nodes[i].stale = true
		to.attendees[i] = attendee{gone: true, watched: none, oldest: none}
	})
	fault(giveUp, active && c.at != inside && c.at != cleaning && c.at != cleaningLast, func(to *barrierWorld) {
		a := &to.attendees[i]
		at, alone := a.at, a.alone
		a.reset()
		a.at = cleaning
		if at >= inside && alone {
			a.at = cleaningLast
			a.send(bEnd, a.version)
			return
		}
		a.send(bRemove, 0)
	})
}

// reset drops the unsent requests and the watches.
func (c *attendee) reset() {
	c.requests, c.count = [8]barrierRequest{}, 0
	c.watchReady, c.watched, c.there, c.created, c.woken, c.over = false, none, false, false, false, false
}

// lose ends the connection. Pending requests are lost, and the member reads again on its next connection.
func (m *doubleBarrier) lose(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	created := c.created
	c.reset()
	c.created, c.connected = created, false
}

// send queues a request.
func (c *attendee) send(op, arg int8) {
	c.requests[c.count] = barrierRequest{op, arg}
	c.count++
}

// drop deletes the node of a member.
func (w *barrierWorld) drop(i int8) {
	if w.nodes[i].there {
		w.zxid++
		w.pzxid = w.zxid
		w.nodes[i] = barrierNode{}
		w.notify(i, false)
	}
}

// notify sends an event to the watchers of the node of a member.
func (w *barrierWorld) notify(i int8, changed bool) {
	for k := range w.attendees {
		if c := &w.attendees[k]; c.watched == i && c.there {
			c.watched, c.there, c.woken, c.over = none, false, true, changed
		}
	}
}

// notifyReady sends an event to the watchers of ready.
func (w *barrierWorld) notifyReady(created bool) {
	for k := range w.attendees {
		if c := &w.attendees[k]; c.watchReady {
			c.watchReady, c.woken = false, true
			if created {
				c.created, c.round = true, w.ready.born
			}
		}
	}
}

// isIn reports whether the node of a member shows that it is in.
func (w *barrierWorld) isIn(k int8) bool {
	n := &w.nodes[k]
	return n.there && w.ready.there && (n.born < w.ready.born || n.signed)
}

// recordEmpty records since when no member is in.
func (w *barrierWorld) recordEmpty() {
	if !w.ready.there || w.ready.dead != 0 {
		return
	}
	for k := range int8(maxClients) {
		if w.isIn(k) {
			return
		}
	}
	w.ready.dead = max(w.zxid, 1)
}

// deleteReady deletes ready for a member that means the one of this birth.
func (w *barrierWorld) deleteReady(i, born int8) {
	if w.ready.born != born {
		w.bad = fmt.Sprintf("%c deletes the ready of another round", 'A'+i)
	}
	w.ready = readyState{dead: w.zxid}
	w.notifyReady(false)
}

// canAct reports whether a member can go on by itself.
func (m *doubleBarrier) canAct(c *attendee) bool {
	switch c.at {
	case outside:
		return c.wants > 0
	case inside:
		return c.count == 0 && (c.connected || c.learned)
	case readyWait, allThere, oldestWait, lowestWait, highestWait, othersWait:
		return c.woken && c.connected
	}
	return false
}

func (m *doubleBarrier) act(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	woken, over, created := c.woken, c.over, c.created
	c.woken, c.over = false, false
	switch c.at {
	case outside:
		*c = attendee{wants: c.wants - 1, connected: c.connected, ended: c.ended, watched: none, oldest: none}
		c.renewed = true
		if c.connected {
			m.look(w, i)
		} else {
			c.at = entering
		}
	case readyWait, oldestWait, allThere:
		c.watched, c.there = none, false
		if created {
			m.begin(w, i, 0)
			return
		}
		if c.at == allThere && !woken { // the moment is over
			c.at = opening
			c.send(bOpen, 0)
			return
		}
		m.look(w, i)
	case inside:
		if !c.learned {
			c.at = learning
			c.send(bLearn, 0)
			return
		}
		m.leave(w, i)
	case lowestWait:
		c.watched, c.there = none, false
		if over || m.flaw == takesDeathForEnd {
			m.finish(w, i)
			return
		}
		m.lookForOthers(c)
	case highestWait:
		c.watched, c.there = none, false
		m.lookAlone(w, i, c.known&^(1<<i))
	case othersWait:
		c.watched, c.there = none, false
		m.lookForOthers(c)
	}
}

// connect connects a member, with its session or a new one.
func (m *doubleBarrier) connect(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	c.connected = true
	if c.ended {
		c.ended, c.renewed = false, true
	}
	switch {
	case c.at == outside, c.at == inside:
	case c.at < inside && c.created && c.at != entering:
		m.begin(w, i, 0)
	case c.at < inside:
		m.look(w, i)
	case c.at == cleaning:
		c.send(bRemove, 0)
	case c.at == cleaningLast:
		c.send(bEnd, c.version)
	case c.at == learning:
		c.send(bLearn, 0)
	case c.at == removingOwn:
		c.send(bRemove, 0)
	case c.at == ending && m.flaw == endsByName: // as the retry policy does
		c.send(bEnd, c.version)
	case c.at == goingFirst, c.at == goingLast, c.at == highestWait, c.at == ending:
		m.lookAlone(w, i, 0)
	case c.at == versioning:
		c.send(bVersion, 0)
	default:
		m.lookForOthers(c)
	}
}

// look is entry.look.
func (m *doubleBarrier) look(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	c.at, c.seen, c.someoneIn, c.vanished, c.oldest, c.created = entering, 0, false, false, none, false
	c.in, c.inCame = none, 0
	if c.renewed { // else the node is there
		c.born = 0
		if w.nodes[i].stale {
			c.send(bRemove, 0)
		}
		c.send(bCreate, 0)
	}
	c.send(bList, 0)
	c.send(bExists, 0)
}

// begin lets a member enter. opened is the transaction in which it has created ready, or 0.
func (m *doubleBarrier) begin(w *barrierWorld, i, opened int8) {
	c := &w.attendees[i]
	c.at, c.created, c.woken, c.watchReady = inside, false, false, false
	c.known, c.newest = c.seen|1<<i, c.listed
	if opened != 0 {
		c.newest, c.learned = opened, true
		return
	}
	if c.connected {
		c.send(bLearn, 0)
	}
}

// pass records which ready let a member in.
func (m *doubleBarrier) pass(w *barrierWorld, i int8) {
	if c := &w.attendees[i]; w.ready.there {
		c.round, c.lost = w.ready.born, false
		if n := &w.nodes[i]; w.ready.dead != 0 && n.there && n.came > w.ready.dead {
			w.bad = fmt.Sprintf("%c passes through an old ready", 'A'+i)
		}
	}
}

// leave is exit.run. It sends a lost list behind the opening again.
func (m *doubleBarrier) leave(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	c.at = goingFirst
	if c.known&(1<<i-1) == 0 {
		m.lookAlone(w, i, c.known&^(1<<i))
		return
	}
	lowest := int8(bits.TrailingZeros8(uint8(c.known)))
	c.send(bGo, lowest)
	c.send(bWatch, lowest)
}

// lookAlone is exit.awaitHighest.
func (m *doubleBarrier) lookAlone(w *barrierWorld, i, others int8) {
	c := &w.attendees[i]
	c.at = goingLast
	if others != 0 {
		c.send(bWatch, int8(bits.Len8(uint8(others))-1))
	}
	c.send(bList, 0)
}

// lookForOthers is exit.awaitOther.
func (m *doubleBarrier) lookForOthers(c *attendee) {
	c.at = othersLook
	c.send(bReady, 0)
	c.send(bList, 0)
}

// finish is the end of Leave.
func (m *doubleBarrier) finish(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	for k := range m.members {
		o := &w.attendees[k]
		if !c.lost && k != i && o.at >= inside && o.at < cleaning && !o.lost && o.round == c.round && w.nodes[k].there {
			w.bad = fmt.Sprintf("%c has left, and %c is still in", 'A'+i, 'A'+k)
		}
	}
	m.rest(c)
}

func (m *doubleBarrier) rest(c *attendee) {
	*c = attendee{wants: c.wants, connected: c.connected, ended: c.ended, watched: none, oldest: none}
}

// lookAgain deletes the member's node, if it exists, and waits for the others: ready or the node is gone.
func (c *attendee) lookAgain() {
	c.reset()
	c.at = removingOwn
	c.send(bRemove, 0)
}

// serve has the server execute the next request of a member, and the member take the answer.
func (m *doubleBarrier) serve(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	r := c.requests[0]
	copy(c.requests[:], c.requests[1:])
	c.count--
	c.requests[c.count] = barrierRequest{}
	own := &w.nodes[i]
	both := own.there && w.ready.there
	switch r.op {
	case bRemove:
		w.drop(i)
		switch c.at {
		case removingOwn:
			m.lookForOthers(c)
		case cleaning:
			m.rest(c)
		}
	case bCreate:
		if !own.there {
			w.zxid++
			w.pzxid = w.zxid
			*own = barrierNode{there: true, born: w.zxid, came: w.zxid}
		}
		c.born, c.renewed, c.lost = own.born, false, false
	case bList:
		m.listed(w, i)
	case bExists:
		m.decide(w, i)
	case bRead:
		m.read(w, i, r.arg)
	case bOpen:
		switch {
		case !own.there:
			m.look(w, i)
		case w.ready.there:
			m.pass(w, i)
			m.begin(w, i, 0)
		default:
			w.zxid++
			w.pzxid = w.zxid
			w.ready = readyState{there: true, born: w.zxid}
			w.notifyReady(true)
			m.pass(w, i)
			m.begin(w, i, w.zxid)
		}
	case bSign:
		other := &w.nodes[r.arg]
		if !both || (!other.there || other.came != c.inCame) && m.flaw != joinsTheGone {
			m.look(w, i)
			return
		}
		if w.ready.dead != 0 {
			w.bad = fmt.Sprintf("%c joins a round without members", 'A'+i)
		}
		m.pass(w, i)
		w.zxid++
		w.pzxid = w.zxid
		w.ready.version++
		own.signed, own.born, w.ready.dead = true, w.zxid, 0
		w.notify(i, false)
		w.notifyReady(false)
		m.begin(w, i, 0)
	case bClear:
		if both && w.ready.version == r.arg {
			if w.ready.dead == 0 {
				w.bad = fmt.Sprintf("%c deletes a ready by which a member is in", 'A'+i)
			}
			w.zxid++
			w.pzxid = w.zxid
			w.deleteReady(i, c.seenReady.born)
		}
		m.look(w, i)
	case bWatch:
		m.watch(w, i, r.arg)
	case bGo:
		if !both || !w.nodes[r.arg].there && m.flaw != leavesUnchecked {
			c.reset()
			m.lookAlone(w, i, 0)
			return
		}
		if w.drop(i); w.list() == 0 {
			w.bad = fmt.Sprintf("%c leaves ready behind", 'A'+i)
		}
	case bEnd:
		m.end(w, i, r.arg)
	case bVersion:
		if c.version = w.ready.version; !w.ready.there {
			c.lookAgain()
			return
		}
		m.lookAlone(w, i, 0)
	case bReady:
		c.open, c.watchReady = w.ready.there && w.ready.born == c.newest, w.ready.there
	case bLearn:
		if c.learned = true; both {
			c.known, c.newest = w.list(), w.ready.born
		}
		if c.at == learning {
			m.leave(w, i)
		}
	case bDeleteReady:
		if w.ready.there {
			w.zxid++
			w.pzxid = w.zxid
			w.deleteReady(i, c.round)
		}
		m.finish(w, i)
	}
}

// list returns the set of members with nodes.
func (w *barrierWorld) list() (members int8) {
	for k, n := range w.nodes {
		if n.there {
			members |= 1 << k
		}
	}
	return members
}

// listed takes a list.
func (m *doubleBarrier) listed(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	members := w.list()
	switch c.at {
	case entering:
		c.seen, c.listed, c.listedReady = members, w.pzxid, w.ready.there
	case goingLast:
		if !w.nodes[i].there || !w.ready.there || c.lost && m.flaw != trustsOldSession {
			c.lookAgain()
			return
		}
		c.known = members
		switch {
		case members&(1<<i-1) != 0:
			c.watched, c.there = none, false
			m.leave(w, i)
		case members == 1<<i:
			c.at, c.alone = ending, true
			c.send(bEnd, c.version)
		case c.watched != none || c.woken:
			c.at = highestWait
		default:
			m.lookAlone(w, i, members&^(1<<i))
		}
	case othersLook:
		if c.seen = members; !c.open && m.flaw != waitsForYounger {
			c.seen &= c.known
		}
		m.nextOther(w, i)
	}
}

// nextOther watches the lowest remaining member, in exit.awaitOther.
func (m *doubleBarrier) nextOther(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	if c.seen == 0 {
		if m.flaw == endsAgainByName && c.open {
			c.send(bDeleteReady, 0)
			return
		}
		m.finish(w, i)
		return
	}
	c.at = othersWatch
	c.send(bWatch, int8(bits.TrailingZeros8(uint8(c.seen))))
}

// decide decides what a snapshot means, in snapshot.verdict.
func (m *doubleBarrier) decide(w *barrierWorld, i int8) {
	c := &w.attendees[i]
	c.seenReady, c.watchReady = w.ready, true
	late := w.ready.there && w.ready.born < c.born
	switch {
	case c.seen&(1<<i) == 0:
		c.renewed = true
		m.look(w, i)
	case w.ready.there && (!late || m.flaw == passesOldReady):
		m.pass(w, i)
		m.begin(w, i, 0)
	case late:
		c.at, c.someoneIn, c.vanished, c.oldest = readingOthers, false, false, none
		c.in, c.inCame = none, 0
		for k := range m.members {
			if c.seen&(1<<k) != 0 {
				c.send(bRead, k)
			}
		}
	case c.listedReady && m.flaw != countsTheGone:
		m.look(w, i)
	case bits.OnesCount8(uint8(c.seen)) >= int(m.quorum):
		if c.listed < w.ready.dead {
			w.bad = fmt.Sprintf("%c counts members that the last round has seen out", 'A'+i)
		}
		for k := range m.members {
			o := &w.attendees[k]
			if c.seen&(1<<k) != 0 && w.nodes[k].there && o.at >= inside && o.at < cleaning && !o.lost {
				w.bad = fmt.Sprintf("%c counts %c, which is in another round", 'A'+i, 'A'+k)
			}
		}
		if c.at = allThere; c.born == c.listed {
			c.at = opening
			c.send(bOpen, 0)
		}
	default:
		c.at = readyWait
	}
}

// read takes the node of a member, in entry.join.
func (m *doubleBarrier) read(w *barrierWorld, i, k int8) {
	c, n := &w.attendees[i], &w.nodes[k]
	switch {
	case !n.there, n.born > c.listed:
		c.vanished = true
	case (n.born < c.seenReady.born || n.signed) && !c.someoneIn:
		c.someoneIn, c.in, c.inCame = true, k, n.came
	}
	if n.there && (c.oldest == none || n.born < c.oldestBorn) {
		c.oldest, c.oldestBorn = k, n.born
	}
	switch {
	case c.count > 0:
	case c.vanished:
		m.look(w, i)
	case c.someoneIn && (w.nodes[i].signed || m.flaw == joinsUnseen):
		m.pass(w, i)
		m.begin(w, i, 0)
	case c.someoneIn:
		c.at = signing
		c.send(bSign, c.in)
	case c.oldest == i || m.flaw == clearsAtOnce:
		c.at = clearing
		c.send(bClear, c.seenReady.version)
	default:
		c.at = oldestWatch
		c.send(bWatch, c.oldest)
	}
}

// watch takes the answer to a watch of a member's node.
func (m *doubleBarrier) watch(w *barrierWorld, i, k int8) {
	c, n := &w.attendees[i], &w.nodes[k]
	c.watched, c.there, c.watchedBorn = none, false, 0
	if n.there {
		c.watched, c.there, c.watchedBorn = k, true, n.born
	}
	old := n.there && n.born <= c.newest
	switch c.at {
	case oldestWatch:
		if c.at = oldestWait; !n.there || n.born > c.listed {
			m.look(w, i)
		}
	case goingFirst:
		in := n.there && (n.born < c.newest || n.signed || m.flaw == watchesYounger)
		if c.at = lowestWait; !in {
			c.watched, c.there = none, false
			m.lookForOthers(c)
		}
	case othersWatch:
		if c.at = othersWait; !old && !(n.there && (c.open || m.flaw == waitsForYounger)) {
			c.watched, c.there = none, false
			if c.open && m.flaw != trustsOldList {
				m.lookForOthers(c)
				return
			}
			c.seen &^= 1 << k
			m.nextOther(w, i)
		}
	}
}

// end executes the last transaction of a round.
func (m *doubleBarrier) end(w *barrierWorld, i, version int8) {
	c := &w.attendees[i]
	there := w.nodes[i].there && w.ready.there
	switch {
	case !there && m.flaw == endsByName && w.ready.there:
		w.zxid++
		w.pzxid = w.zxid
		w.deleteReady(i, c.round)
		m.finish(w, i)
	case there && (w.ready.version == version || m.flaw == endsUnchecked):
		w.zxid++
		w.pzxid = w.zxid
		w.deleteReady(i, c.round)
		w.nodes[i] = barrierNode{}
		w.notify(i, true)
		if c.at == cleaningLast {
			m.rest(c)
			return
		}
		m.finish(w, i)
	case c.at == cleaningLast:
		c.at = cleaning
		c.send(bRemove, 0)
	case there:
		c.at, c.alone = versioning, m.flaw == endsUnseen
		c.send(bVersion, 0)
	default:
		c.lookAgain()
	}
}

func (m *doubleBarrier) violation(w *barrierWorld) string { return w.bad }

// unfinished names the members that wait for ever, and the nodes that are left. A member that waits for too few others
// waits as it should.
func (m *doubleBarrier) unfinished(w *barrierWorld) string {
	for i := range m.members {
		c := &w.attendees[i]
		switch {
		case c.gone || c.at == outside:
		case c.at >= inside:
			return fmt.Sprintf("%c waits for ever to leave", 'A'+i)
		case w.ready.there:
			return fmt.Sprintf("%c waits for ever, and there is a ready", 'A'+i)
		case bits.OnesCount8(uint8(w.list())) >= int(m.quorum):
			return fmt.Sprintf("%c waits for ever, and all are there", 'A'+i)
		}
	}
	if w.ready.there && w.faults == m.faults {
		return "ready is left"
	}
	return ""
}

// encode counts the transactions from 0.
func (m *doubleBarrier) encode(w *barrierWorld, to []byte) []byte {
	var used [128 / 64]uint64
	use := func(zxids ...int8) {
		for _, z := range zxids {
			used[z>>6] |= 1 << (z & 63)
		}
	}
	use(0, w.pzxid, w.ready.born, w.ready.dead)
	for i := range m.members {
		n, c := &w.nodes[i], &w.attendees[i]
		use(n.born, n.came, c.inCame, c.born, c.listed, c.seenReady.born, c.oldestBorn, c.newest, c.round, c.watchedBorn)
	}
	rank := func(z int8) byte {
		if z > 63 {
			return byte(bits.OnesCount64(used[0]) + bits.OnesCount64(used[1]&(1<<(z&63)-1)))
		}
		return byte(bits.OnesCount64(used[0] & (1<<z - 1)))
	}
	to = append(to, rank(w.pzxid), rank(w.ready.born), byte(w.ready.version), rank(w.ready.dead), byte(w.faults),
		flags(w.ready.there, w.bad != ""))
	for i := range m.members {
		n, c := &w.nodes[i], &w.attendees[i]
		to = append(to, flags(n.there, n.signed, n.stale), rank(n.born), rank(n.came),
			byte(c.at), byte(c.wants), rank(c.born), byte(c.seen), rank(c.listed), rank(c.seenReady.born),
			byte(c.seenReady.version),
			byte(c.in), rank(c.inCame),
			byte(c.oldest), rank(c.oldestBorn), rank(c.newest), rank(c.round), byte(c.known), byte(c.version), byte(c.watched),
			rank(c.watchedBorn), byte(c.count),
			flags(c.connected, c.ended, c.renewed, c.lost, c.gone, c.someoneIn, c.vanished, c.watchReady),
			flags(c.there, c.created, c.woken, c.over, c.alone, c.open, c.learned, c.seenReady.there), flags(c.listedReady))
		for _, r := range c.requests[:c.count] {
			to = append(to, byte(r.op), byte(r.arg))
		}
	}
	return to
}

// describe describes a step and the members after it.
func (m *doubleBarrier) describe(from *barrierWorld, st step, to *barrierWorld) string {
	name := string(rune('A' + st.who))
	said := name + " goes on by itself"
	switch st.what {
	case aServe:
		r := from.attendees[st.who].requests[0]
		said = fmt.Sprintf("the server answers %s: %s", name, barrierRequests[r.op])
		if r.op == bRead || r.op == bWatch {
			said += fmt.Sprintf(" %c", 'A'+r.arg)
		}
	case aConnect:
		said = name + " connects"
	case aEnd:
		said = "the server ends the old session of " + name
	case aFault:
		said = "FAULT: " + name + " " + kindNames[1<<st.arg]
	}
	for i := range m.members {
		if a, b := from.attendees[i].at, to.attendees[i].at; a != b {
			said += fmt.Sprintf("; %c %s", 'A'+i, barrierPhases[b])
		}
	}
	there := []string{}
	for i, n := range to.nodes {
		if n.there {
			there = append(there, fmt.Sprintf("%c%d", 'A'+i, n.born))
		}
	}
	if to.ready.there {
		there = append(there, fmt.Sprintf("ready%d.%d", to.ready.born, to.ready.version))
	}
	return fmt.Sprintf("%s   %v", said, there)
}

func (m *doubleBarrier) String() string {
	return fmt.Sprintf("members=%d quorum=%d rounds=%d faults=%d leftover=%t", m.members, m.quorum, m.rounds, m.faults,
		m.leftover)
}

// TestDoubleBarrierKeepsItsPromises explores the sound double barrier: no member passes an old ready, enters before all
// have come, waits for ever, leaves before the others, or deletes the ready of another round.
func TestDoubleBarrierKeepsItsPromises(t *testing.T) {
	tests := []struct {
		doubleBarrier
		long bool
	}{
		{doubleBarrier: doubleBarrier{members: 2, quorum: 2, rounds: 2, faults: 1}},
		{doubleBarrier: doubleBarrier{members: 2, quorum: 1, rounds: 2, faults: 1}},
		{doubleBarrier: doubleBarrier{members: 2, quorum: 2, rounds: 1, faults: 2, leftover: true}, long: true},
		{doubleBarrier: doubleBarrier{members: 2, quorum: 1, rounds: 2, faults: 1, leftover: true}, long: true},
		{doubleBarrier: doubleBarrier{members: 3, quorum: 2, rounds: 1}, long: true},
		{doubleBarrier: doubleBarrier{members: 3, quorum: 3, rounds: 1, faults: 1}, long: true},
	}
	for _, test := range tests {
		m := &test.doubleBarrier
		m.may = anything
		t.Run(m.String(), func(t *testing.T) {
			if test.long && !testenv.Long() {
				t.Skip("its bounds are those of make prove")
			}
			if r := run[barrierWorld](t, m); r.violation != "" {
				t.Error(r.violation)
			}
		})
	}
}

// TestDoubleBarrierFlawIsFound explores double barriers that are broken on purpose.
func TestDoubleBarrierFlawIsFound(t *testing.T) {
	tests := []struct {
		name string
		doubleBarrier
	}{
		{"a late member does not sign up", doubleBarrier{members: 2, quorum: 1, rounds: 2, flaw: joinsUnseen}},
		{
			"a late member joins members that are gone",
			doubleBarrier{members: 2, quorum: 1, rounds: 2, faults: 1, may: expiry, flaw: joinsTheGone},
		},
		{"a late member passes an old ready", doubleBarrier{members: 2, quorum: 2, leftover: true, flaw: passesOldReady}},
		{"everybody deletes the old ready", doubleBarrier{members: 2, quorum: 2, leftover: true, flaw: clearsAtOnce}},
		{"the last deletes ready at any version", doubleBarrier{members: 2, quorum: 1, rounds: 2, flaw: endsUnchecked}},
		{
			"the last deletes ready by its name",
			doubleBarrier{members: 2, quorum: 1, rounds: 2, faults: 1, may: cut, flaw: endsByName},
		},
		{
			"a member without a node deletes ready by its name",
			doubleBarrier{members: 2, quorum: 1, rounds: 2, faults: 1, may: pause, flaw: endsAgainByName},
		},
		{
			"the end of the lowest is the end",
			doubleBarrier{members: 3, quorum: 3, faults: 1, may: pause, flaw: takesDeathForEnd},
		},
		{
			"all present members are waited for",
			doubleBarrier{members: 2, quorum: 2, rounds: 2, faults: 1, may: pause, flaw: waitsForYounger},
		},
		{"the lowest of the next round is watched", doubleBarrier{members: 2, quorum: 2, rounds: 2, flaw: watchesYounger}},
		{
			"the end is given up and done",
			doubleBarrier{members: 2, quorum: 1, rounds: 2, faults: 1, may: giveUp, flaw: endsUnseen},
		},
		{
			"the last waits by a node of an earlier session",
			doubleBarrier{members: 2, quorum: 2, faults: 2, may: expiry | pause, flaw: trustsOldSession},
		},
		{"the lowest has died", doubleBarrier{members: 2, quorum: 2, faults: 1, may: pause, flaw: leavesUnchecked}},
		{"a list of a round that has ended is counted", doubleBarrier{members: 3, quorum: 2, flaw: countsTheGone}},
		{
			"a member that has gone since the list is passed over",
			doubleBarrier{members: 3, quorum: 3, faults: 1, may: expiry, flaw: trustsOldList},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := &test.doubleBarrier
			if m.rounds = max(m.rounds, 1); m.flaw == trustsOldList && !testenv.Long() {
				t.Skip("its bounds are those of make prove")
			}
			if r := run[barrierWorld](t, m); r.violation == "" {
				t.Error("nothing is found")
			}
		})
	}
}
