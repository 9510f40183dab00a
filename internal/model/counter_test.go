package model

import (
	"fmt"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// counterMachine is the machine of a counter and of clients that increment it. Connections are lost with the answers on
// them. A request of a lost connection may be carried out at any later moment, or never.
type counterMachine struct {
	receipts   bool
	increments int8 // of each client
	losses     int8 // of connections
	expiries   int8 // of sessions, right behind a loss
	rule       countingRule
}

var _ machine[numbered] = (*counterMachine)(nil)

// countingRule is what a client does after a lost answer.
type countingRule int

const (
	provedAlone    countingRule = iota // it believes what the node proves
	refusedIsOther                     // a refusal is another client's change, as in Java
	equalIsOurs                        // the next version with our bytes is ours
	equalIsOthers                      // the next version with any bytes is another client's
	goneIsRefused                      // a receipt that is gone shows that nothing was applied
)

const counters = 2 // clients

// numbered is a state: the node, and the clients.
type numbered struct {
	version, value int8
	clients        [counters]counterClient
	lost, expired  int8
}

// counterClient is a client with the increment that it is about.
type counterClient struct {
	phase         counterPhase
	done          int8 // increments before this one
	version, post int8 // of the write
	doubt         bool // an answer was lost
	request       bool // of the connection that there is, not yet carried out
	answer        counterAnswer
	late          int8 // requests of lost connections
	noted, own    int8 // versions of the receipt, as the client has it and as it is
	gone          bool // the receipt is gone
	applied       int8 // so often this increment is in the number
}

type counterPhase int8

const (
	readsNumber counterPhase = iota
	writesNumber
	findsOut
	finished
)

type counterAnswer int8

const (
	unanswered counterAnswer = iota
	writeApplied
	writeRefused
)

// The steps.
const (
	cRead int8 = iota
	cCarryOut
	cCarryOutLate
	cDropLate
	cAnswer
	cLose
	cExpire
	cFindOut
	cNext
)

var countingSteps = []string{
	"reads", "has its write carried out", "has a late write carried out", "has a late write dropped", "gets the answer",
	"loses its connection", "loses its session too", "reads what has become of it", "goes on",
}

func (m *counterMachine) first() numbered { return numbered{} }

func (m *counterMachine) next(s *numbered, emit func(step, numbered)) {
	for i := range s.clients {
		c := &s.clients[i]
		try := func(what int8, fault, possible bool, do func(to *numbered, c *counterClient)) {
			if possible {
				to := *s
				do(&to, &to.clients[i])
				emit(step{fault: fault, what: what, who: int8(i)}, to)
			}
		}
		try(cRead, false, c.phase == readsNumber, func(to *numbered, c *counterClient) {
			c.version, c.post, c.phase, c.request, c.doubt = to.version, to.value+1, writesNumber, true, false
			c.late = 0  // the version of late writes has passed
			if c.gone { // it makes another one
				c.gone, c.noted, c.own = false, 0, 0
			}
		})
		try(cCarryOut, false, c.request, func(to *numbered, c *counterClient) {
			c.request, c.answer = false, writeRefused
			if m.carryOut(to, c) {
				c.answer = writeApplied
			}
		})
		try(cCarryOutLate, false, c.late > 0 && !c.gone, func(to *numbered, c *counterClient) {
			c.late--
			m.carryOut(to, c)
		})
		try(cDropLate, false, c.late > 0, func(_ *numbered, c *counterClient) { c.late-- })
		waits := c.phase == writesNumber
		try(cAnswer, false, waits && c.answer != unanswered, m.answered)
		loses := func(to *numbered, c *counterClient) {
			to.lost++
			if c.request {
				c.late++
			}
			c.request, c.answer, c.doubt = true, unanswered, true // it is sent again
		}
		try(cLose, true, waits && s.lost < m.losses, loses)
		try(cExpire, true, waits && s.lost < m.losses && s.expired < m.expiries, func(to *numbered, c *counterClient) {
			loses(to, c)
			to.expired++
			c.gone = m.receipts
			if m.receipts {
				c.request, c.phase = false, findsOut // the transaction cannot be sent again
			}
		})
		try(cFindOut, false, c.phase == findsOut, m.foundOut)
		try(cNext, false, c.phase == finished && c.done+1 < m.increments, func(_ *numbered, c *counterClient) {
			*c = counterClient{done: c.done + 1, noted: c.noted, own: c.own, gone: c.gone}
		})
	}
}

// carryOut carries out the write of a client, if the node has its version.
func (m *counterMachine) carryOut(s *numbered, c *counterClient) bool {
	if s.version != c.version || m.receipts && (c.own != c.noted || c.gone) {
		return false
	}
	s.version, s.value = s.version+1, c.post
	c.applied++
	if m.receipts {
		c.own++
	}
	return true
}

func (m *counterMachine) answered(_ *numbered, c *counterClient) {
	answer := c.answer
	c.answer = unanswered
	switch {
	case answer == writeApplied:
		c.noted, c.phase = c.own, finished
	case c.doubt && m.rule != refusedIsOther:
		c.phase = findsOut
	default:
		c.phase = readsNumber
	}
}

// foundOut mirrors engine.findOut.
func (m *counterMachine) foundOut(s *numbered, c *counterClient) {
	isSame := s.version == c.version
	isNext := s.version == c.version+1
	switch {
	case m.receipts && !c.gone && c.own == c.noted+1:
		c.noted, c.phase = c.own, finished
	case m.receipts && !c.gone && !isSame, m.receipts && c.gone && m.rule == goneIsRefused:
		c.phase = readsNumber
	case isSame:
		c.phase, c.request = writesNumber, true
		if c.gone {
			c.gone, c.noted, c.own, c.late = false, 0, 0, 0 // requests of the old receipt are refused
		}
	case isNext && (s.value != c.post || m.rule == equalIsOthers):
		c.phase = readsNumber
	case isNext && m.rule == equalIsOurs:
		c.phase = finished
	default: // nobody can know
		c.phase, c.applied = finished, 1
		c.late = 0
	}
}

// violation finds an increment that is in the number twice, or acknowledged and not in it.
func (m *counterMachine) violation(s *numbered) string {
	for i, c := range s.clients {
		if c.applied > 1 || c.phase == finished && c.applied != 1 {
			return fmt.Sprintf("increment %d of client %d is in the number %d times", c.done, i, c.applied)
		}
	}
	return ""
}

func (m *counterMachine) unfinished(s *numbered) string {
	for i, c := range s.clients {
		if c.phase != finished || c.done+1 < m.increments {
			return fmt.Sprintf("client %d has not finished", i)
		}
	}
	return ""
}

func (m *counterMachine) encode(s *numbered, to []byte) []byte {
	to = append(to, byte(s.version), byte(s.value), byte(s.lost), byte(s.expired))
	for _, c := range s.clients {
		to = append(to, byte(c.phase), byte(c.done), byte(c.version), byte(c.post), flags(c.doubt, c.request, c.gone),
			byte(c.answer), byte(c.late), byte(c.noted), byte(c.own), byte(c.applied))
	}
	return to
}

func (m *counterMachine) describe(_ *numbered, st step, to *numbered) string {
	c := to.clients[st.who]
	return fmt.Sprintf("client %d %-30s the node: version %d, number %d; its increment %d is in it %d times",
		st.who, countingSteps[st.what], to.version, to.value, c.done, c.applied)
}

func TestCounterCountsOnce(t *testing.T) {
	t.Parallel()
	increments, losses := testenv.Size[int8](2, 2, 3), testenv.Size[int8](3, 3, 4)
	for _, m := range []counterMachine{
		{increments: increments, losses: losses},
		{increments: increments, losses: losses, receipts: true},
		{increments: increments, losses: losses, receipts: true, expiries: 2},
	} {
		r := explore(&m)
		t.Logf("%+v: %v", m, r)
		if r.violation != "" {
			t.Errorf("%+v: %v", m, r)
		}
	}
}

func TestCounterWithBrokenRuleIsFound(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]counterMachine{
		"a refusal is another's":    {rule: refusedIsOther},
		"equal bytes are ours":      {rule: equalIsOurs},
		"equal bytes are another's": {rule: equalIsOthers},
		"a receipt that is gone":    {rule: goneIsRefused, receipts: true, expiries: 1},
	} {
		m.increments, m.losses = 2, 2
		if r := explore(&m); r.violation == "" {
			t.Errorf("%s: %v", name, r)
		} else {
			t.Logf("%s: %v", name, r)
		}
	}
}
