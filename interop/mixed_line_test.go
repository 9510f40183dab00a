package interop_test

import (
	"path"
	"slices"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// lineMember is a holder of a lock or a waiter for it.
type lineMember struct {
	*contender
	kind    lockKind
	side    side
	session int64
	waiting <-chan wait
}

// lineUp has the sides ask for locks, one side after the other. Those of the first turn are let in.
func (m *meeting) lineUp(turns [][]lockKind) (line [][]*lineMember) {
	m.t.Helper()
	n := 0
	for i, kinds := range turns {
		line = append(line, nil)
		for _, k := range kinds {
			s := m.peers[n%len(m.peers)]
			n++
			one := &lineMember{contender: k.of(s), kind: k, side: s, session: m.session(s)}
			before := m.owned(one.session)
			one.waiting = m.later(one.contender)
			testenv.Eventually(m.t, func() bool {
				if i == 0 {
					return len(one.waiting) == 1
				}
				return m.owned(one.session) > before
			}, "one stands in line")
			line[i] = append(line[i], one)
		}
	}
	return line
}

// lineIs waits until all clients list the same nodes, in the order of the line. Readers get
// of readers, and writers of writers. Of the waiters for leases only the first one has a node among them, if it
// is of Java.
func (m *meeting) lineIs(line []*lineMember) {
	m.t.Helper()
	for _, one := range line {
		if one.participants == nil {
			continue
		}
		var want []int64
		for _, other := range line {
			if other.kind.alone == one.kind.alone {
				want = append(want, other.session)
			}
		}
		if one.kind.nodes > 1 {
			most := mostLeases
			if len(line) > most {
				most += one.kind.nodesOf(line[most].side) - 1
			}
			want = want[:min(len(want), most)]
		}
		var owners []int64
		defer func() {
			if m.t.Failed() {
				m.t.Logf("nodes of sessions %x, not %x", owners, want)
			}
		}()
		testenv.Eventually(m.t, func() bool {
			nodes, err := one.participants(m.ctx)
			if err != nil {
				m.t.Fatal(err)
			}
			owners = nil
			for _, name := range nodes {
				all := m.nodes("/")
				if i := slices.IndexFunc(all, func(n node) bool { return path.Base(n.path) == name }); i >= 0 {
					owners = append(owners, all[i].stat.EphemeralOwner)
				}
			}
			return slices.Equal(owners, want)
		}, "all list one line")
	}
}

// TestGoAndJavaStandInOneLine has two clients of Go and two of Java line up. All see one line, and each is let in in
// its turn.
func TestGoAndJavaStandInOneLine(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	for name, turns := range map[string][][]lockKind{ // of each turn all are let in together
		"mutex":           {{mutex}, {mutex}, {mutex}, {mutex}},
		"read-write lock": {{readLock, readLock}, {writeLock}, {writeLock}, {readLock, readLock}},
		"semaphore mutex": {{semaphoreMutex}, {semaphoreMutex}, {semaphoreMutex}, {semaphoreMutex}},
		"semaphore":       {{oneLease, oneLease}, {oneLease, oneLease}},
		"multi lock":      {{multiLock}, {multiLock}, {multiLock}, {multiLock}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := meetApart(t, 2)
			line := m.lineUp(turns)
			m.lineIs(slices.Concat(line...))
			for i, turn := range line {
				var inside []*held
				for _, one := range turn {
					inside = append(inside, m.take(one.waiting))
				}
				for _, one := range slices.Concat(line[i+1:]...) {
					m.mustWait(one.waiting)
				}
				for _, h := range inside {
					m.release(h)
				}
			}
			m.awaitNothing()
		})
	}
}

// TestLineOfGoAndJavaClosesUp ends the sessions of two waiters, each before one of the other language, and of the
// holder. Only the next one acquires, and later those that queued again.
func TestLineOfGoAndJavaClosesUp(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	for name, k := range map[string]lockKind{"mutex": mutex, "write lock": writeLock} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := meetApart(t, 2)
			line := slices.Concat(m.lineUp([][]lockKind{{k}, {k}, {k}, {k}})...)
			m.take(line[0].waiting)
			theirs, ours, next := line[1], line[2], line[3]
			m.expire(m.peers[1])
			m.expire(m.peers[2])
			for _, one := range line[1:] {
				m.mustWait(one.waiting)
			}
			m.expire(m.peers[0])
			inside := m.take(next.waiting)
			m.mustWait(theirs.waiting)
			m.mustWait(ours.waiting)
			m.release(inside)
			var got wait
			last := ours.waiting
			select {
			case got = <-theirs.waiting:
			case got = <-ours.waiting:
				last = theirs.waiting
			}
			if got.err != nil {
				t.Fatal(got.err)
			}
			m.mustWait(last)
			m.release(got.held)
			m.release(m.take(last))
			m.awaitNothing()
		})
	}
}
