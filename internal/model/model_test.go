package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

// anything is every kind of fault.
const anything = cut | expiry | pause | crash | deletion | wipe | giveUp

// run explores a machine and logs the result.
func run[S any](t *testing.T, m machine[S]) *result {
	t.Helper()
	begin := time.Now()
	r := explore(m)
	t.Logf("%v, %v", r, time.Since(begin).Round(10*time.Millisecond))
	return r
}

func (m *recipe) String() string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", m.protocol), "model.")
	return fmt.Sprintf("%s/%s leases=%d rounds=%d servers=%d faults=%d",
		name, m.members, m.leases, m.rounds, m.servers, m.faults)
}

// TestRecipeKeepsItsPromises explores sound recipes: no two holders, no endless wait, no node or watch left.
func TestRecipeKeepsItsPromises(t *testing.T) {
	tests := []struct {
		protocol
		members string
		leases  int
		rounds  int8
		servers int8
		faults  int8
		long    bool
	}{
		{protocol: mutex{}, members: "ooo", servers: 1, faults: 1},
		{protocol: mutex{}, members: "oo", servers: 2, faults: 1},
		{protocol: mutex{}, members: "oj", servers: 2, faults: 1},
		{protocol: mutex{}, members: "oo", rounds: 2, servers: 2, faults: 1, long: true},
		{protocol: mutex{}, members: "ooo", servers: 2, faults: 1, long: true},
		{protocol: mutex{}, members: "oo", servers: 2, faults: 2, long: true},
		{protocol: mutex{}, members: "ooj", servers: 1, faults: 2, long: true},
		{protocol: mutex{}, members: "oooo", servers: 1, faults: 1, long: true},

		{protocol: readWriteLock{}, members: "wr", servers: 2, faults: 1},
		{protocol: readWriteLock{}, members: "wd", servers: 2, faults: 1},
		{protocol: readWriteLock{}, members: "wdrj", servers: 1},
		{protocol: readWriteLock{}, members: "wdr", servers: 2, faults: 1, long: true},
		{protocol: readWriteLock{}, members: "wdj", servers: 1, faults: 1, long: true},
		{protocol: readWriteLock{}, members: "wr", servers: 2, faults: 2, long: true},

		{protocol: semaphore{}, members: "11", leases: 1, servers: 2, faults: 1},
		{protocol: semaphore{}, members: "121", leases: 2, servers: 1, faults: 1},
		{protocol: semaphore{}, members: "1J", leases: 1, servers: 2, faults: 1},
		{protocol: semaphore{}, members: "111", leases: 1, servers: 2, faults: 1, long: true},
		{protocol: semaphore{}, members: "112", leases: 2, servers: 2, faults: 1, long: true},
		{protocol: semaphore{}, members: "1J", leases: 1, servers: 2, faults: 2, long: true},
		{protocol: semaphore{}, members: "11J", leases: 1, servers: 1, faults: 1, long: true},

		{protocol: latch{}, members: "oo", servers: 2, faults: 1},
		{protocol: latch{}, members: "os", servers: 1, faults: 2},
		{protocol: latch{}, members: "ooo", servers: 2, faults: 1, long: true},
		{protocol: latch{}, members: "os", servers: 2, faults: 2, long: true},
	}
	for _, test := range tests {
		m := &recipe{
			protocol: test.protocol, members: test.members, leases: test.leases, rounds: max(test.rounds, 1),
			servers: test.servers, lag: test.servers, faults: test.faults, may: anything,
		}
		t.Run(m.String(), func(t *testing.T) {
			if test.long && !testenv.Long() {
				t.Skip("its bounds are those of make prove")
			}
			if r := run(t, m); r.violation != "" {
				t.Error(r.violation)
			}
		})
	}
}

// TestFlawIsFound explores recipes that are broken on purpose.
func TestFlawIsFound(t *testing.T) {
	const two, waits = "hold at once", "waits for ever"
	tests := []struct {
		name string
		recipe
		want string
	}{
		{"the event grants, a node is deleted", recipe{members: "ooo", may: deletion, flaw: grantsWithoutList}, two},
		{"the event grants, the line is deleted", recipe{members: "ooo", may: wipe, flaw: grantsWithoutList}, two},
		{
			"the event grants, two watches, the line is deleted",
			recipe{members: "ooo", may: wipe, servers: 2, flaw: watchesTwo},
			two,
		},
		{
			"the event grants, a writer downgrades",
			recipe{protocol: readWriteLock{}, members: "wd", flaw: grantsWithoutList},
			"writes",
		},
		{"a lost create is searched for too early", recipe{members: "oo", may: cut, servers: 2, flaw: findsBehind}, waits},
		{"a lost create is tried again", recipe{members: "oo", may: cut, flaw: createsTwice}, waits},
		{"the servers end the session first", recipe{members: "oo", may: pause, flaw: expiresFirst}, two},
		{"a watch stays", recipe{members: "oo", may: giveUp, flaw: keepsWatch}, "a watch of"},
		{"a node stays", recipe{members: "oo", may: giveUp, flaw: keepsNode}, waits},
		{
			"a writer downgrades with a new number",
			recipe{protocol: readWriteLock{}, members: "wd", flaw: readsAnew},
			"writes",
		},
		{
			"a writer downgrades without a look at its node",
			recipe{protocol: readWriteLock{}, members: "wd", may: deletion, flaw: downgradesBlind},
			"writes",
		},
		{"the node of an earlier session grants", recipe{members: "oo", may: expiry, flaw: trustsOldNode}, two},
		{"a watch is lost with its connection", recipe{members: "oo", may: cut, flaw: losesWatch}, waits},
		{"an event is lost with its connection", recipe{members: "oo", may: cut, flaw: missesEvent}, waits},
		{
			"a node among the leases without a turn",
			recipe{protocol: semaphore{}, members: "111", leases: 1, may: deletion, flaw: leaseWithoutTurn},
			"2 leases of 1",
		},
		{
			"two nodes among the leases wait for each other",
			recipe{protocol: uncounted{}, members: "111", leases: 1, may: deletion, flaw: leaseWithoutTurn},
			waits,
		},
		{
			"the transaction does not check the turn",
			recipe{protocol: semaphore{}, members: "11", leases: 1, may: deletion, flaw: takesUnchecked},
			"2 leases of 1",
		},
		{
			"the leases are counted first",
			recipe{protocol: semaphore{}, members: "11", leases: 1, flaw: countsFirst},
			"2 leases of 1",
		},
		{"the leases are watched late", recipe{protocol: semaphore{}, members: "11", leases: 1, flaw: watchesLate}, waits},
		{
			"a granted latch leads after an outage",
			recipe{protocol: latch{}, members: "oo", may: cut | deletion, faults: 2, flaw: freshOutlives},
			two,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.protocol == nil {
				test.protocol = mutex{}
			}
			test.rounds, test.servers, test.lag = 1, max(test.servers, 1), 2
			if test.may != 0 {
				test.faults = max(test.faults, 1)
			}
			if r := run(t, &test.recipe); !strings.Contains(r.violation, test.want) || r.violation == "" {
				t.Errorf("got %q, want %q", r.violation, test.want)
			}
		})
	}
}

// uncounted is a semaphore in which too many leases are no violation, so that the checker finds other violations.
type uncounted struct{ semaphore }

func (uncounted) broken(*recipe, *world) string { return "" }

func (h *heartbeat) String() string {
	return fmt.Sprintf("half tick=%d delay=%d margin=%d requests=%d rule=%d",
		h.halfTick, h.delay, h.margin, h.requests, h.rule)
}

// TestClockIsBehindTheLeader explores the session clock. It is never ahead of the leader if the margin is longer than
// half a tick and the way of a ping together, and no shorter margin or other rule achieves that.
func TestClockIsBehindTheLeader(t *testing.T) {
	tests := []struct {
		heartbeat
		broken, long bool
	}{
		{heartbeat: heartbeat{halfTick: 1, delay: 0, margin: 2, requests: 1}},
		{heartbeat: heartbeat{halfTick: 2, delay: 0, margin: 3, requests: 1}, long: true},
		{heartbeat: heartbeat{halfTick: 1, delay: 1, margin: 3, requests: 1}, long: true},
		{heartbeat: heartbeat{halfTick: 1, delay: 0, margin: 2, requests: 2}, long: true},
		{heartbeat: heartbeat{halfTick: 2, delay: 0, margin: 2, requests: 1}, broken: true},
		{heartbeat: heartbeat{halfTick: 1, delay: 1, margin: 2, requests: 1}, broken: true},
		{heartbeat: heartbeat{halfTick: 2, delay: 0, margin: 3, requests: 1, rule: anyAnswer}, broken: true},
		{heartbeat: heartbeat{halfTick: 2, delay: 0, margin: 3, requests: 1, rule: ownSend}, broken: true},
	}
	for _, test := range tests {
		t.Run(test.String(), func(t *testing.T) {
			if test.long && !testenv.Long() {
				t.Skip("its bounds are those of make prove")
			}
			if r := run(t, &test.heartbeat); (r.violation != "") != test.broken {
				t.Errorf("got %q", r.violation)
			}
		})
	}
}

// toy is a machine of numbers below 4, for the checker itself.
type toy struct {
	steps map[int][]int
	bad   int
}

var _ machine[int] = toy{}

func (toy) first() int { return 0 }

func (m toy) next(s *int, emit func(step, int)) {
	for _, to := range m.steps[*s] {
		emit(step{}, to)
	}
}

func (toy) encode(s *int, to []byte) []byte { return append(to, byte(*s)) }

func (m toy) violation(s *int) string {
	if *s == m.bad {
		return "bad"
	}
	return ""
}

func (toy) unfinished(s *int) string {
	if *s != 3 {
		return "stuck"
	}
	return ""
}

func (toy) describe(_ *int, _ step, to *int) string { return fmt.Sprint(*to) }

func TestCheckerFindsTheShortestWayToWhatIsWrong(t *testing.T) {
	tests := []struct {
		name  string
		toy   toy
		want  string
		trace string
	}{
		{"sound", toy{steps: map[int][]int{0: {1, 2}, 1: {2}, 2: {3}}, bad: -1}, "", ""},
		{"violation", toy{steps: map[int][]int{0: {1}, 1: {2, 3}, 2: {3}}, bad: 3}, "bad", "1 3"},
		{"stuck", toy{steps: map[int][]int{0: {1, 3}, 1: {2}}, bad: -1}, "stuck", "1 2"},
		{"circle", toy{steps: map[int][]int{0: {1}, 1: {2, 3}, 2: {1}}, bad: -1}, "it goes round without an end", "1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := explore(test.toy)
			if trace := strings.Join(r.trace, " "); r.violation != test.want || trace != test.trace {
				t.Errorf("got %q by way of %q, want %q by way of %q", r.violation, trace, test.want, test.trace)
			}
		})
	}
}
