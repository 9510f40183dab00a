package model

import "fmt"

// heartbeat is the machine of one session, of the clock that ends what its client holds, and of the servers: a leader,
// which ends the session, and a follower, which the client is connected to. The session clock of the client is a
// time at or before the leader's last sign of the session. If that is true at every moment, in every partition, the
// timeout of the client, counted from its clock, ends before that of the leader, counted from the last sign.
type heartbeat struct {
	halfTick int8 // the leader pings the follower so often
	delay    int8 // so long a ping of the leader may take
	margin   int8 // a request counts if it was answered so long before a heartbeat was sent
	requests int8 // so many the client has on their way at a time
	rule     clockRule
}

var _ machine[session] = (*heartbeat)(nil)

// clockRule decides to which time the answer to a request moves the clock.
type clockRule int

const (
	answeredBefore clockRule = iota // a write's: to the newest request that was answered the margin before it was sent
	ownSend                         // a write's: to when it was sent
	anyAnswer                       // any: to when that request was sent
)

// session is a state. It holds ages, not times.
type session struct {
	heard, clock age
	untilPing    int8          // of the leader
	noted        bool          // the follower has heard of the session since its last report
	down         queue[packet] // from the leader to the follower
	up           queue[packet] // from the follower to the leader
	requests     queue[call]   // of the client, without an answer
	arrived      int8          // so many of them are at the follower
	answered     [5]age        // when the newest request was sent of those that were answered 0, 1, 2 … ago
	ripe         age           // when the newest was sent that counts
}

// age is the time since an event, at most old.
type age int8

const old age = 6

func (a *age) grow() { *a = min(*a+1, old) }

// packet is a ping of the leader, a report of the follower, a write, or its commit.
type packet struct {
	write bool
	sent  age
}

// call is a request of the client.
type call struct {
	write      bool
	sent, base age // its answer moves the clock to base
}

// queue is a connection, which keeps the order of its packets.
type queue[T any] struct {
	items [4]T
	count int8
}

func (q *queue[T]) all() []T { return q.items[:q.count] }

func (q *queue[T]) hasRoom() bool { return int(q.count) < len(q.items) }

func (q *queue[T]) push(x T) {
	q.items[q.count] = x
	q.count++
}

func (q *queue[T]) pop() T {
	x := q.items[0]
	copy(q.items[:], q.items[1:])
	q.count--
	clear(q.items[q.count:])
	return x
}

// The steps.
const (
	sTick int8 = iota
	sPing
	sDown
	sUp
	sRead
	sWrite
	sArrive
)

var sessionSteps = []string{
	"time passes", "the leader pings the follower", "the follower hears of the leader", "the leader hears of the follower",
	"the client sends a read", "the client sends a write", "the follower gets a request",
}

func (h *heartbeat) first() session {
	s := session{ripe: old}
	for i := range s.answered {
		s.answered[i] = old
	}
	return s
}

// next emits the steps of a state. No step must happen, but the times of pings are bounded.
func (h *heartbeat) next(s *session, emit func(step, session)) {
	try := func(what int8, possible bool, do func(to *session)) {
		if possible {
			to := *s
			do(&to)
			for to.arrived > 0 && !to.requests.items[0].write { // reads are answered, but none that is behind a write
				h.reply(&to)
			}
			emit(step{what: what, fault: true}, to)
		}
	}
	late := s.untilPing == 0
	for _, p := range s.down.all() {
		late = late || !p.write && int8(p.sent) >= h.delay
	}
	try(sTick, !late, h.tick)
	try(sPing, s.untilPing == 0 && s.down.hasRoom(), func(to *session) {
		to.untilPing = h.halfTick
		to.down.push(packet{})
	})
	try(sDown, s.down.count > 0 && s.up.hasRoom(), func(to *session) {
		if to.down.pop().write {
			h.reply(to)
		} else if to.noted { // other reports are of no interest here
			to.up.push(packet{})
			to.noted = false
		}
	})
	try(sUp, s.up.count > 0 && s.down.hasRoom(), func(to *session) {
		if to.up.pop().write { // the other servers agree
			to.down.push(packet{write: true})
			return
		}
		to.heard = 0
	})
	for _, write := range []bool{false, true} {
		try(sRead+int8(flags(write)), s.requests.count < h.requests, func(to *session) {
			to.requests.push(call{write: write, base: h.base(s)})
		})
	}
	try(sArrive, s.arrived < s.requests.count && s.up.hasRoom(), func(to *session) {
		to.noted = true
		if to.requests.items[to.arrived].write {
			to.up.push(packet{write: true})
		}
		to.arrived++
	})
}

// tick adds one unit to all ages.
func (h *heartbeat) tick(s *session) {
	s.untilPing--
	copy(s.answered[1:h.margin+1], s.answered[:h.margin])
	s.answered[0] = old
	for i := range s.answered {
		s.answered[i].grow()
	}
	s.heard.grow()
	s.clock.grow()
	s.ripe.grow()
	for i := range s.down.all() {
		s.down.items[i].sent.grow()
	}
	for i := range s.requests.all() {
		s.requests.items[i].sent.grow()
		s.requests.items[i].base.grow()
	}
	s.ripe = min(s.ripe, s.answered[h.margin])
}

// base returns the time to which the answer to a request sent now moves the clock.
func (h *heartbeat) base(s *session) age {
	if h.rule == ownSend || h.rule == anyAnswer {
		return 0
	}
	return s.ripe
}

// reply answers the oldest request.
func (h *heartbeat) reply(s *session) {
	r := s.requests.pop()
	s.arrived--
	s.answered[0] = r.sent
	if r.write || h.rule == anyAnswer {
		s.clock = min(s.clock, r.base)
	}
}

// violation finds a clock that is ahead of the leader. If the follower is cut off at that moment, the clock stays
// ahead.
func (h *heartbeat) violation(s *session) string {
	if s.clock < s.heard {
		return fmt.Sprintf("the client's clock says %d ago, the leader has heard %d ago", s.clock, s.heard)
	}
	return ""
}

// unfinished returns "", because the machine has no end.
func (h *heartbeat) unfinished(*session) string { return "" }

func (h *heartbeat) encode(s *session, to []byte) []byte {
	to = append(to, byte(s.heard), byte(s.clock), byte(s.untilPing), flags(s.noted), byte(s.ripe), byte(s.arrived),
		byte(s.requests.count), byte(s.down.count), byte(s.up.count))
	for _, a := range s.answered {
		to = append(to, byte(a))
	}
	for _, r := range s.requests.all() {
		to = append(to, flags(r.write), byte(r.sent), byte(r.base))
	}
	for _, p := range s.down.all() {
		to = append(to, flags(p.write), byte(p.sent))
	}
	for _, p := range s.up.all() {
		to = append(to, flags(p.write))
	}
	return to
}

func (h *heartbeat) describe(_ *session, st step, to *session) string {
	return fmt.Sprintf("%-36s clock: %d ago, heard: %d ago", sessionSteps[st.what], to.clock, to.heard)
}
