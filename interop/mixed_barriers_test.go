package interop_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/barrier"
)

// barrierPath is below nodes that the first member must make.
const barrierPath = meetingPath + "/barriers/barrier"

// gate is a side's distributed barrier.
type gate struct{ set, remove, wait func(context.Context) error }

func newGate(s side) gate {
	if s, ok := s.(golang); ok {
		b := barrier.NewDistributedBarrier(s.Client, barrierPath)
		return gate{b.SetBarrier, b.RemoveBarrier, b.WaitOnBarrier}
	}
	o := s.(*peer).newObject("barrier", "barrierNew", interop.Args{"path": barrierPath})
	return gate{o.step("Set"), o.step("Remove"), o.step("Wait")}
}

// member is a side's member of a double barrier.
type member struct {
	side
	enter, leave func(context.Context) error
}

func newMember(s side, members int) *member {
	if s, ok := s.(golang); ok {
		d := barrier.NewDistributedDoubleBarrier(s.Client, barrierPath, members)
		return &member{s, d.Enter, d.Leave}
	}
	o := s.(*peer).newObject("doubleBarrier", "doubleBarrierNew", interop.Args{"path": barrierPath, "members": members})
	return &member{s, o.step("Enter"), o.step("Leave")}
}

func (one *member) isJavas() bool {
	_, is := one.side.(*peer)
	return is
}

func newMembers(sides ...side) (all []*member) {
	for _, s := range sides {
		all = append(all, newMember(s, len(sides)))
	}
	return all
}

// step returns a command without arguments, which must answer true or nothing.
func (o *object) step(op string) func(context.Context) error {
	return func(ctx context.Context) error {
		var answer any
		if err := o.j.Call(ctx, o.kind+op, o.args(nil), &answer); err != nil {
			return err
		}
		if answer == false {
			return errors.New(o.kind + op + ": false")
		}
		return nil
	}
}

// begin does something that may take a while.
func (m *meeting) begin(do func(context.Context) error) <-chan error {
	end := make(chan error, 1)
	go func() { end <- do(m.ctx) }()
	return end
}

// awaitEnd waits for the end of the pending calls.
func (m *meeting) awaitEnd(begun ...<-chan error) {
	m.t.Helper()
	for _, end := range begun {
		if err := <-end; err != nil { // it ends with the context of the test
			m.t.Fatalf("%v; at the barrier: %q", err, m.children())
		}
	}
}

func (m *meeting) do(steps ...func(context.Context) error) {
	m.t.Helper()
	for _, step := range steps {
		m.awaitEnd(m.begin(step))
	}
}

// mustGoOn fails if a pending call has returned, after enough time to do so.
func (m *meeting) mustGoOn(begun ...<-chan error) {
	m.t.Helper()
	m.pause()
	for _, end := range begun {
		select {
		case err := <-end:
			m.t.Fatalf("it does not wait: %v; at the barrier: %q", err, m.children())
		default:
		}
	}
}

// pause gives each side the time to react.
func (m *meeting) pause() {
	m.t.Helper()
	for range 5 {
		for _, s := range m.sides {
			m.do(s.look)
		}
	}
}

// children returns the names of the nodes at the barrier, in order.
func (m *meeting) children() (names []string) {
	m.t.Helper()
	for _, n := range m.nodes(barrierPath) {
		names = append(names, path.Base(n.path))
	}
	return names
}

// awaitWatch waits until a side watches a node.
func (m *meeting) awaitWatch(s side, path string) {
	m.t.Helper()
	watcher := fmt.Sprintf("\t0x%x\n", uint64(m.session(s)))
	testenv.Eventually(m.t, func() bool {
		answer, err := testenv.Server(m.t).FourLetterWord(m.ctx, "wchp") // paths, each with its watchers
		if err != nil {
			m.t.Fatal(err)
		}
		_, watchers, _ := strings.Cut("\n"+answer, "\n"+m.root+path+"\n")
		for line := range strings.Lines(watchers) {
			if !strings.HasPrefix(line, "\t") {
				break
			}
			if line == watcher {
				return true
			}
		}
		return false
	}, fmt.Sprint(s, " watches ", path))
}

// TestGoAndJavaOpenTheSameGate sets a barrier on one side. Both wait until one of them removes it.
func TestGoAndJavaOpenTheSameGate(t *testing.T) {
	forBothWays(t, func(_ *testing.T, m *meeting, first, second side) {
		setter, other := newGate(first), newGate(second)
		for _, remover := range []gate{setter, other} {
			m.do(other.wait, setter.wait) // it is not set
			m.do(setter.set, other.set)   // the second time it is set already
			waiting := []<-chan error{m.begin(setter.wait), m.begin(other.wait)}
			m.awaitWatch(first, barrierPath)
			m.awaitWatch(second, barrierPath)
			m.mustGoOn(waiting...)
			m.do(remover.remove, remover.remove)
			m.awaitEnd(waiting...)
		}
	})
}

func TestGatesOfGoAndJavaOutliveTheirSessions(t *testing.T) {
	forBothWays(t, func(_ *testing.T, m *meeting, first, second side) {
		setter, waiter := newGate(first), newGate(second)
		m.do(setter.set)
		waiting := m.begin(waiter.wait)
		m.awaitWatch(second, barrierPath)
		m.expire(first)
		m.expire(second)
		m.awaitWatch(second, barrierPath)
		m.mustGoOn(waiting)
		m.do(setter.remove)
		m.awaitEnd(waiting)
	})
}

func TestGatesOfGoAndJavaLookTheSame(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	m := meet(t, 1)
	var all [2][]nodeProperties
	for i, s := range m.sides {
		g := newGate(s)
		m.do(g.set)
		all[i] = m.properties()
		m.do(g.remove)
		m.clear()
	}
	if n := strings.Count(barrierPath, "/"); len(all[1]) != n || ephemerals(all[1]) > 0 {
		t.Errorf("nodes of Java: %+v", all[1])
	}
	if diff := cmp.Diff(all[1], all[0]); diff != "" {
		t.Errorf("(-Java +Go)\n%s", diff)
	}
}

// TestGoAndJavaBeginAndEndTogether has two members of Go and two of Java go round after round; another is the last to
// come, and to go, each time.
//
// All wait until all have left. And a member of Java 5.4.0 is a new one in each round: Leave may leave a watch on the
// node of another member, and Enter returns when that is made again, whatever members are missing.
func TestGoAndJavaBeginAndEndTogether(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	m := meet(t, 2)
	members := newMembers(m.sides...)
	n := len(members)
	for round := range n*n + n {
		for i, one := range members {
			if one.isJavas() {
				members[i] = newMember(one.side, n)
			}
		}
		m.enter(members, members[round%n])
		m.leave(members, members[round/n%n])
	}
}

// enter has all members enter, one of them when the others wait for it.
func (m *meeting) enter(members []*member, last *member) {
	m.t.Helper()
	m.together(members, last, (*member).entry, func() { m.awaitWaiting(others(members, last)) })
	if got := m.children(); len(got) != len(members)+1 || !slices.Contains(got, "ready") {
		m.t.Fatalf("inside: %q", got)
	}
}

// awaitWaiting waits until so many members, and no others, have come and wait.
func (m *meeting) awaitWaiting(members []*member) {
	m.t.Helper()
	for _, one := range members {
		m.awaitWatch(one.side, path.Join(barrierPath, "ready"))
	}
	testenv.Eventually(m.t, func() bool { return len(m.children()) == len(members) }, "all but the last have come")
}

// leave has all members leave, one of them when the others wait for it. The one with the lowest name may do so with its
// node.
func (m *meeting) leave(members []*member, last *member) {
	m.t.Helper()
	stay := 1
	if lowest := m.nodes(barrierPath)[0]; lowest.stat.EphemeralOwner != m.session(last.side) {
		stay++
	}
	m.together(members, last, (*member).exit, func() {
		testenv.Eventually(m.t, func() bool { return len(m.membersIn()) <= stay }, "all but the last are leaving")
	})
	if got := m.children(); len(got) > 0 {
		m.t.Fatalf("left behind: %q", got)
	}
}

func (m *meeting) membersIn() []string {
	m.t.Helper()
	return slices.DeleteFunc(m.children(), func(name string) bool { return name == "ready" })
}

// together has all members take a step, one of them when the others wait. No step may end before all have begun it, but
// those that need not wait for the last.
func (m *meeting) together(
	members []*member, last *member, step func(*member) (do func(context.Context) error, early int), othersWait func(),
) {
	m.t.Helper()
	var begun atomic.Int32
	begin := func(one *member) <-chan error {
		do, early := step(one)
		return m.begin(func(ctx context.Context) error {
			begun.Add(1)
			err := do(ctx)
			if n := int(begun.Load()); err == nil && n < len(members)-early {
				err = fmt.Errorf("%v does not wait for the others: only %d have begun", one, n)
			}
			return err
		})
	}
	var ends []<-chan error
	for _, one := range others(members, last) {
		ends = append(ends, begin(one))
	}
	othersWait()
	m.pause()
	m.awaitEnd(append(ends, begin(last))...)
}

func (one *member) entry() (do func(context.Context) error, early int) { return one.enter, 0 }

// exit: Java 5.4.0 takes the last member inside for one that is leaving.
func (one *member) exit() (do func(context.Context) error, early int) {
	if one.isJavas() {
		early = 1
	}
	return one.leave, early
}

func others(members []*member, than *member) []*member {
	return slices.DeleteFunc(slices.Clone(members), func(one *member) bool { return one == than })
}

// TestMembersOfGoAndJavaLookTheSame compares the nodes of members inside the barrier.
func TestMembersOfGoAndJavaLookTheSame(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	m := meet(t, 1)
	ours, theirs := m.sides[0], m.sides[1]
	var want []nodeProperties
	for _, sides := range [][]side{{theirs, theirs}, {ours, ours}, {ours, theirs}} {
		members := newMembers(sides...)
		first := m.begin(members[0].enter)
		m.do(members[1].enter)
		m.awaitEnd(first)
		got := m.properties()
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-Java +got)\n%s", sides, diff)
		}
		first = m.begin(members[0].leave)
		m.do(members[1].leave)
		m.awaitEnd(first)
		m.clear()
	}
	var paths []string
	for _, one := range want {
		paths = append(paths, one.Path)
	}
	shape := []string{
		meetingPath, path.Dir(barrierPath), barrierPath,
		barrierPath + "/<uuid>", barrierPath + "/<uuid>", barrierPath + "/ready",
	}
	if diff := cmp.Diff(shape, paths); diff != "" || ephemerals(want) != 2 || want[len(want)-1].Ephemeral {
		t.Errorf("nodes of Java: %+v\n%s", want, diff)
	}
}

// forEachVictim runs a story with two members of Go and two of Java in which the session of one of them ends.
func forEachVictim(t *testing.T, story func(m *meeting, members []*member, victim *member)) {
	t.Helper()
	t.Parallel()
	testenv.RequireReal(t)
	for i, name := range []string{"Go", "Java"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := meet(t, 2)
			members := newMembers(m.sides...)
			story(m, members, members[i])
		})
	}
}

// TestAllEnterWhenOneHasLostItsSession ends the session of a waiting member. A Go member enters again by itself. Enter
// of a Java member may end in any way, so another Java member enters.
func TestAllEnterWhenOneHasLostItsSession(t *testing.T) {
	forEachVictim(t, func(m *meeting, members []*member, victim *member) {
		m.t.Helper()
		last := members[len(members)-1]
		entering := make(map[*member]<-chan error)
		for _, one := range others(members, last) {
			entering[one] = m.begin(one.enter)
		}
		m.awaitWaiting(others(members, last))
		m.expire(victim.side)
		if victim.isJavas() {
			next := newMember(victim.side, len(members))
			members[slices.Index(members, victim)] = next
			delete(entering, victim)
			entering[next] = m.begin(next.enter)
		}
		m.awaitWaiting(others(members, last))
		ends := slices.Collect(maps.Values(entering))
		m.mustGoOn(ends...)
		m.do(last.enter)
		m.awaitEnd(ends...)
		m.leave(members, last)
	})
}

// TestAllLeaveWithoutOneThatHasLostItsSession ends the session of a member. Leave of Java says then that it has no
// node, or that the connection was lost.
func TestAllLeaveWithoutOneThatHasLostItsSession(t *testing.T) {
	forEachVictim(t, func(m *meeting, members []*member, victim *member) {
		m.t.Helper()
		last := members[len(members)-1]
		m.enter(members, last)
		m.expire(victim.side)
		m.leave(others(members, victim), last)
		if !victim.isJavas() {
			m.do(victim.leave)
		}
	})
}

// TestGoThatHasLostItsSessionWaitsForJava ends the session of Go inside: Java does not wait for it, but it for Java.
func TestGoThatHasLostItsSessionWaitsForJava(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	m := meet(t, 1)
	members := newMembers(m.sides...)
	ours, theirs := members[0], members[1]
	m.enter(members, theirs)
	m.expire(ours.side)
	leaving := m.begin(ours.leave)
	m.mustGoOn(leaving)
	m.do(theirs.leave)
	m.awaitEnd(leaving)
	if got := m.children(); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}
}
