package model

import "fmt"

// heartbeat is the machine of one session, of the clock that ends what its client holds, and of the servers: a leader, which
// ends the session, and a follower, which the client is connected to. Time is counted in units. The session clock of the
// client says that the leader has heard of it at that time or later. If it always tells the truth, the client's timeout,
// counted from its clock, is over before the leader's, counted from when it has heard.
type heartbeat struct {
	halfTick int8 // the leader asks its followers so often
	delay    int8 // so long a message of the leader to the follower may take
	margin   int8 // a request counts if it was answered so long before a heartbeat was sent
	horizon  int8 // so long it goes on
	rule     clockRule
}

// clockRule says what the answer to a request moves the clock to.
type clockRule int

const (
	answeredBefore clockRule = iota // a write's: to the newest request that was answered the margin before it was sent
	anyAnswer                       // any: to when that request was sent
	ownSend                         // a write's: to when it was sent
)

// session is a state. Messages on a connection arrive in their order.
type session struct {
	now, heard, clock int8
	nextPing          int8          // of the leader
	linked            bool          // leader and follower
	noted             bool          // the follower has heard of the session since its last report
	down              queue[packet] // from the leader to the follower
	up                queue[packet] // from the follower to the leader
	requests          queue[call]   // of the client, without an answer
	arrived           int8          // so many of them are at the follower
	answered          [6]int8       // when the newest request was sent that was answered so long ago
	ripe              int8          // and that was answered before, by the margin at least
}

// packet is a ping of the leader with the follower's report, or a write with its agreement.
type packet struct {
	write, noted bool
	sent         int8
}

// call is a request of the client.
type call struct {
	write      bool
	sent, base int8 // base is what its answer moves the clock to
}

// queue is a short list, as a plain value.
type queue[T any] struct {
	items [6]T
	count int8
}

func (q *queue[T]) push(x T) {
	q.items[q.count] = x
	q.count++
}

func (q *queue[T]) pop() (x T) {
	x = q.items[0]
	copy(q.items[:], q.items[1:])
	q.count--
	var zero T
	q.items[q.count] = zero
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
	sPart
)

var sessionSteps = []string{
	"time passes", "the leader pings the follower", "the follower hears of the leader", "the leader hears of the follower",
	"the client sends a read", "the client sends a write", "the follower gets a request", "leader and follower are parted",
}

func (h *heartbeat) first() session { return session{linked: true} }

func (h *heartbeat) next(s *session, emit func(step, session)) {
	try := func(what int8, possible bool, do func(to *session)) {
		if possible {
			to := *s
			do(&to)
			h.answer(&to)
			emit(step{what: what}, to)
		}
	}
	late := s.linked && s.down.count > 0 && s.now-s.down.items[0].sent >= h.delay
	try(sTick, s.now < h.horizon && !late && s.nextPing > 0, func(to *session) {
		to.now++
		to.nextPing--
		to.ripe = max(to.ripe, to.answered[h.margin])
		copy(to.answered[1:], s.answered[:h.margin])
		to.answered[0] = 0
		if h.margin > 0 {
			to.ripe = max(to.ripe, to.answered[h.margin])
		}
	})
	try(sPing, s.nextPing == 0, func(to *session) {
		to.nextPing = h.halfTick
		if to.linked {
			to.down.push(packet{sent: to.now})
		}
	})
	try(sDown, s.down.count > 0 && s.up.count < 6, func(to *session) {
		if p := to.down.pop(); p.write {
			to.reply(h)
			return
		}
		to.up.push(packet{noted: to.noted})
		to.noted = false
	})
	try(sUp, s.up.count > 0 && s.down.count < 6, func(to *session) {
		p := to.up.pop()
		if p.write { // the others agree
			to.down.push(packet{write: true, sent: to.now})
		} else if p.noted {
			to.heard = to.now
		}
	})
	for _, write := range []bool{false, true} {
		what := sRead
		if write {
			what = sWrite
		}
		try(what, s.requests.count < 2, func(to *session) {
			base := to.ripe
			if h.margin == 0 {
				base = max(base, to.answered[0])
			}
			if h.rule == ownSend {
				base = to.now
			}
			to.requests.push(call{write: write, sent: to.now, base: base})
		})
	}
	try(sArrive, s.arrived < s.requests.count && s.up.count < 6, func(to *session) {
		to.noted = true
		if to.requests.items[to.arrived].write && to.linked {
			to.up.push(packet{write: true})
		}
		to.arrived++
	})
	try(sPart, s.linked, func(to *session) {
		to.linked, to.down, to.up = false, queue[packet]{}, queue[packet]{}
	})
}

// answer has the follower answer the reads that wait behind no write.
func (h *heartbeat) answer(s *session) {
	for s.arrived > 0 && !s.requests.items[0].write {
		s.reply(h)
	}
}

// reply answers the oldest request.
func (s *session) reply(h *heartbeat) {
	r := s.requests.pop()
	s.arrived--
	s.answered[0] = r.sent
	if h.rule == anyAnswer {
		s.clock = max(s.clock, r.sent)
	} else if r.write {
		s.clock = max(s.clock, r.base)
	}
}

func (h *heartbeat) violation(s *session) string {
	if s.clock > s.heard {
		return fmt.Sprintf("the client counts from %d, the leader from %d", s.clock, s.heard)
	}
	return ""
}

func (h *heartbeat) unfinished(*session) string { return "" }

func (h *heartbeat) encode(s *session, to []byte) []byte {
	to = append(to, byte(s.now), byte(s.heard), byte(s.clock), byte(s.nextPing), flags(s.linked, s.noted), byte(s.ripe), byte(s.arrived),
		byte(s.requests.count), byte(s.down.count), byte(s.up.count))
	for _, age := range s.answered {
		to = append(to, byte(age))
	}
	for _, r := range s.requests.items[:s.requests.count] {
		to = append(to, flags(r.write), byte(r.sent), byte(r.base))
	}
	for _, q := range []*queue[packet]{&s.down, &s.up} {
		for _, p := range q.items[:q.count] {
			to = append(to, flags(p.write, p.noted), byte(p.sent))
		}
	}
	return to
}

func (h *heartbeat) describe(_ *session, st step, to *session) string {
	return fmt.Sprintf("%d: %s   clock %d, heard %d", to.now, sessionSteps[st.what], to.clock, to.heard)
}
