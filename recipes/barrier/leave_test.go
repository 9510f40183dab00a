package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
)

// inside is a scene with a member "b" that is in, together with the others, and a client and the faults in its way.
type inside struct {
	*scene
	member *barrier.DistributedDoubleBarrier
	client *framework.Client
	faults *curatortest.Faults
}

func newInside(t *testing.T, others ...string) *inside {
	t.Helper()
	return newInsideWith(t, nil, others...)
}

func newInsideWith(t *testing.T, opts []framework.Option, others ...string) *inside {
	t.Helper()
	s := &inside{scene: newBarrier(t)}
	s.client, s.faults = s.proxied(opts...)
	s.member = s.scene.member(s.client, "b", len(others)+1)
	entering := s.later(s.member.Enter)
	s.awaitWatch("ready")
	for _, other := range others {
		s.put(other)
	}
	s.put("ready")
	entering.returns()
	return s
}

// again has another member leave and come again at once: its node has the same name.
func (s *scene) again(names ...string) {
	s.Helper()
	var ops []any
	for _, name := range names {
		ops = append(ops, &zk.DeleteRequest{Path: s.path(name), Version: -1},
			&zk.CreateRequest{Path: s.path(name), Flags: zk.FlagEphemeral, Acl: zk.WorldACL(zk.PermAll)})
	}
	_, err := s.raw.Multi(ops...)
	s.must(err)
}

// signUp makes the node of a late member that enters the open round.
func (s *scene) signUp(name string) {
	s.Helper()
	_, err := s.raw.Multi(&zk.SetDataRequest{Path: s.path("ready"), Version: -1},
		&zk.CreateRequest{Path: s.path(name), Flags: zk.FlagEphemeral, Acl: zk.WorldACL(zk.PermAll)},
		&zk.SetDataRequest{Path: s.path(name), Version: -1})
	s.must(err)
}

// leave has another member leave, as Java's does: if it is lower than the member it goes last.
func (s *scene) leave(name string) {
	s.Helper()
	s.take(name)
	if name < "b" {
		s.take("ready")
	}
}

// A member that leaves watches another, and the next when that one has gone. Java 5.4.0 waits in the same way: each
// waiter for the lowest is woken once.
func TestLeaveWaitsForOtherMembers(t *testing.T) {
	t.Parallel()
	type step struct {
		watched string   // by the member
		there   []string // at the barrier then; nil: not checked
		late    string   // comes then, if it is not empty
		leaving []string // go then
	}
	for _, tt := range []struct {
		name   string
		others []string
		steps  []step
	}{
		{"the lowest leaves last", []string{"c", "d"}, []step{
			{"d", nil, "", []string{"d"}},
			{"c", []string{"b", "c", "ready"}, "", []string{"c"}},
		}},
		{"the others wait for the lowest", []string{"a", "c"}, []step{
			{"a", []string{"a", "c", "ready"}, "", []string{"c"}},
			{"a", nil, "", []string{"a", "ready"}},
		}},
		{"the lowest dies", []string{"a", "c", "d"}, []step{
			{"a", nil, "", []string{"a"}},
			{"c", nil, "", []string{"d"}},
			{"c", nil, "", []string{"c", "ready"}},
		}},
		{"a late member comes while the barrier is open", []string{"c"}, []step{
			{"c", nil, "d", []string{"c"}},
			{"d", nil, "", []string{"d"}},
		}},
		{"a late member is the lowest and leaves last", []string{"c"}, []step{
			{"c", nil, "a", []string{"c"}},
			{"a", []string{"a", "ready"}, "", []string{"a", "ready"}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newInside(t, tt.others...)
			c := s.later(s.member.Leave)
			for _, step := range tt.steps {
				s.awaitWatch(step.watched)
				if step.there != nil {
					s.await(step.there...)
				}
				c.waits()
				if step.late != "" {
					s.put(step.late)
				}
				s.take(step.leaving...)
			}
			c.returns()
			s.awaitNothing()
		})
	}
}

// forEachOrder runs a test for a member b behind the lowest, a, and for one that is the lowest, before c.
func forEachOrder(t *testing.T, test func(t *testing.T, other string)) {
	t.Helper()
	for _, other := range []string{"a", "c"} {
		t.Run("the other is "+other, func(t *testing.T) { test(t, other) })
	}
}

// In Java that is the end.
func TestLeaveOneNodeLeftKeepsWaiting(t *testing.T) {
	t.Parallel()
	forEachOrder(t, func(t *testing.T, other string) {
		t.Helper()
		s := newInside(t, other)
		c := s.later(s.member.Leave)
		s.awaitWatch(other)
		for range 3 {
			s.cut(s.client, s.faults)
			s.awaitWatch(other)
		}
		c.waits()
		s.leave(other)
		c.returns()
		s.awaitNothing()
	})
}

// The next member deletes a ready node that no member with a node has deleted.
func TestLeaveLowestDiedReadyIsCleared(t *testing.T) {
	t.Parallel()
	s := newInside(t, "a")
	c := s.later(s.member.Leave)
	s.awaitWatch("a")
	s.take("a")
	c.returns()
	s.await("ready")
	c = s.later(s.member.Enter)
	s.await("b")
	s.awaitWatch("ready")
	c.waits()
	s.put("d")
	s.put("ready")
	c.returns()
}

func TestLeaveMemberOfNextRoundIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, again := range map[string][]string{"the lowest": {"a", "c"}, "all others": {"c", "a"}, "a late one": {"c"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInside(t, "a", "c")
			c := s.later(s.member.Leave)
			s.awaitWatch("a")
			s.await("a", "c", "ready")
			s.take("ready")
			s.again(again...)
			if name == "a late one" {
				s.take("a")
			}
			c.returns()
			s.awaitNoWatch()
		})
	}
}

// A member of Java has seen one node left and taken that for the end (java: internalLeave). It has come again and waits
// for us to come.
func TestLeaveMemberThatDidNotWaitIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	forEachOrder(t, func(t *testing.T, other string) {
		t.Helper()
		s := newInside(t, other)
		s.take("ready")
		s.again(other)
		s.must(s.member.Leave(s.ctx))
		s.await(other)
		s.must(s.member.Enter(s.ctx))
		s.again(other) // and once more
		s.take("ready")
		s.must(s.member.Leave(s.ctx))
		s.take(other)
		s.awaitNothing()
	})
}

// So has one whose time was up, while another is still in.
func TestLeaveReadyGoneWaitsForMembersIn(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	s.put("c")
	b := s.member(s.client(), "b", 2)
	s.must(b.Enter(s.ctx))
	s.take("ready")
	c := s.later(b.Leave)
	s.awaitWatch("c")
	c.waits()
	s.take("c")
	c.returns()
	s.awaitNothing()
}

func TestLeaveCancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	forEachOrder(t, func(t *testing.T, other string) {
		t.Helper()
		s := newInside(t, other)
		s.wantErr(s.member.Leave(s.within(100*time.Millisecond)), context.DeadlineExceeded)
		s.await(other, "ready") // it is still open for the members inside
		s.awaitNoWatch()
		s.wantErr(s.member.Leave(s.ctx), barrier.ErrNotEntered)
	})
}

func TestLeaveCancelledBeforeReplyLeavesNothing(t *testing.T) {
	t.Parallel()
	for op, other := range map[string]string{"getChildren2": "c", "multi": "a", "getData": "a"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			s := newInside(t, other)
			held := s.faults.Add(curatortest.Rule{Ops: []string{op}, Count: 1, Action: curatortest.HoldReply})
			ctx, cancel := context.WithCancel(s.ctx)
			c := s.laterWith(ctx, s.member.Leave)
			s.must(held.Wait(s.ctx))
			cancel()
			c.fails(context.Canceled)
			held.Release()
			s.await(other, "ready")
			s.awaitNoWatch()
			s.must(s.member.Enter(s.ctx)) // the round is still on
			s.await(slices.Sorted(slices.Values([]string{"b", "ready", other}))...)
		})
	}
}

func TestLeaveListRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ op, other string }{{"getChildren2", "c"}, {"getData", "c"}, {"getData", "a"}} {
		s := newInside(t, tt.other)
		s.faults.Add(curatortest.Rule{Ops: []string{tt.op}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
		if err := s.member.Leave(s.ctx); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("%+v: got %v", tt, err)
		}
		s.await(tt.other, "ready")
	}
}

func TestLeaveCancelledBehindLowestLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newInside(t, "a", "c")
	ctx, cancel := context.WithCancel(s.ctx)
	c := s.laterWith(ctx, s.member.Leave)
	s.awaitWatch("a")
	s.take("a")
	s.awaitWatch("c")
	cancel()
	c.fails(context.Canceled)
	s.await("c", "ready")
	s.awaitNoWatch()
}

// The end of the lowest means that no other member was left.
func TestLeaveBehindLowestSendsNoList(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n, " members"), func(t *testing.T) {
			t.Parallel()
			s := newBarrier(t)
			var entering, leaving []*call
			var faults []*curatortest.Faults
			members := make([]*barrier.DistributedDoubleBarrier, n)
			for i := range members {
				client, f := s.proxied()
				members[i], faults = s.member(client, string(rune('a'+i)), n), append(faults, f)
				entering = append(entering, s.later(members[i].Enter))
			}
			for _, c := range entering {
				c.returns()
			}
			for _, m := range members[1:] {
				leaving = append(leaving, s.later(m.Leave))
			}
			s.await("a", "ready")
			for _, f := range faults[1:] {
				testenv.Eventually(t, func() bool { return watched(f, "a") }, "a watch on the lowest")
				f.ResetTrace()
			}
			s.must(members[0].Leave(s.ctx))
			for i, c := range leaving {
				c.returns()
				for _, e := range faults[i+1].Trace() {
					if !e.Reply && e.Op != "ping" {
						t.Errorf("a request behind the end of the lowest: %v", e)
					}
				}
			}
			s.awaitNothing()
		})
	}
}

// watched reports whether a member has the answer to its watch on another, and those to further operations behind it.
func watched(f *curatortest.Faults, name string, behind ...string) bool {
	trace := f.Trace()
	i := slices.IndexFunc(trace, func(e curatortest.TraceEntry) bool {
		return e.Reply && e.Op == "getData" && strings.HasSuffix(e.Path, "/"+name)
	})
	return i >= 0 && !slices.ContainsFunc(behind, func(op string) bool {
		return !slices.ContainsFunc(trace[i:], func(e curatortest.TraceEntry) bool { return e.Reply && e.Op == op })
	})
}

func TestLeaveLowestBehindTheOtherSendsNoList(t *testing.T) {
	t.Parallel()
	s := newInside(t, "c")
	c := s.later(s.member.Leave)
	testenv.Eventually(t, func() bool { return watched(s.faults, "c", "getChildren2") }, "a watch on the other, a list")
	s.faults.ResetTrace()
	s.take("c")
	c.returns()
	for _, e := range s.faults.Trace() {
		if !e.Reply && (e.Op == "getChildren2" || e.Op == "getChildren" || e.Op == "removeWatches") {
			t.Errorf("a request behind the end of the other: %v", e)
		}
	}
	s.awaitNothing()
}

// A late member signs up while another one is in, and that one leaves after it was listed and before it is watched.
func TestLeaveListedMemberGoneWaitsForLateMember(t *testing.T) {
	t.Parallel()
	s := newInside(t, "a", "c")
	c := s.later(s.member.Leave)
	s.awaitWatch("a")
	s.await("a", "c", "ready")
	watch := s.faults.Add(curatortest.Rule{
		Ops: []string{"getData"}, Path: s.path("c"), Count: 1, Action: curatortest.HoldRequest,
	})
	s.take("a")
	s.must(watch.Wait(s.ctx))
	s.signUp("d")
	s.take("c")
	watch.Release()
	s.awaitWatch("d")
	c.waits()
	s.take("d", "ready")
	c.returns()
	s.awaitNothing()
}

// One may be allowed to create and delete below a node, and not to change what is there.
func TestLeaveLowestWithoutWritePermission(t *testing.T) {
	t.Parallel()
	s := newInside(t, "c")
	refusal := s.faults.Add(curatortest.Rule{
		Ops: []string{"multi"}, Count: 1, Action: curatortest.ReplyError,
		Err: zk.ErrNoAuth,
	})
	c := s.later(s.member.Leave)
	s.awaitWatch("c")
	s.take("c")
	c.returns()
	if refusal.Hits() != 1 {
		t.Error("it was not refused")
	}
	s.awaitNothing()
}

func TestLeaveReadyNotDeletedIsGoneBeforeNextEnter(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	d := s.member(client, "b", 1)
	s.must(d.Enter(s.ctx))
	deletion := faults.Add(curatortest.Rule{Ops: []string{"multi", "delete"}, Action: curatortest.HoldRequest})
	ctx, cancel := context.WithCancel(s.ctx)
	c := s.laterWith(ctx, d.Leave)
	s.must(deletion.Wait(s.ctx))
	cancel()
	c.fails(context.Canceled)
	if err := d.Enter(s.within(50 * time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("entered by what is being deleted: %v", err)
	}
	s.await("b", "ready")
	deletion.Remove()
	s.awaitNothing()
	s.must(d.Enter(s.ctx))
	s.must(d.Leave(s.ctx))
	s.awaitNothing()
}

func TestLeaveSessionExpiredWaitsForMembersIn(t *testing.T) {
	t.Parallel()
	s := newInside(t, "c")
	s.settle(s.client) // it has listed the members behind the opening
	s.must(testenv.Server(t).ExpireSession(s.client.SessionID()))
	s.await("c", "ready")
	c := s.later(s.member.Leave)
	s.awaitWatch("c")
	c.waits()
	s.take("c", "ready")
	c.returns()
	s.awaitNothing()
}

func TestLeaveSessionExpiredIgnoresNextRound(t *testing.T) {
	t.Parallel()
	s := newInside(t, "c")
	s.must(testenv.Server(t).ExpireSession(s.client.SessionID()))
	s.await("c", "ready")
	s.take("ready")
	s.again("c")
	s.must(s.member.Leave(s.ctx))
	s.must(s.member.Enter(s.ctx))
	s.await("b", "c", "ready")
}

func TestLeaveOutageKeepsWaiting(t *testing.T) {
	t.Parallel()
	forEachOrder(t, func(t *testing.T, other string) {
		t.Helper()
		s := newInsideWith(t, impatient, other)
		restore := s.faults.RefuseConnects()
		s.faults.CutAll()
		c := s.later(s.member.Leave)
		s.outlast(s.client)
		c.waits()
		restore()
		s.awaitWatch(other)
		restore = s.faults.RefuseConnects()
		s.faults.CutAll()
		s.leave(other)
		c.waits()
		restore()
		c.returns()
		s.awaitNothing()
	})
}

// In Java the lowest member, and the one whose time is up, delete ready while others are in.
func TestLeaveReadyGoneWaitsForLastMember(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		gone []string
	}{{"ready", []string{"ready"}}, {"the lowest and ready", []string{"a", "ready"}}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newBarrier(t)
			client := s.client()
			b := s.member(client, "b", 3)
			s.put("a")
			entering := s.later(b.Enter)
			s.await("a", "b")
			s.awaitWatch("ready")
			s.settle(client)
			s.put("c")
			s.put("ready")
			entering.returns()
			s.settle(client)
			s.take(tt.gone...)
			leaving := s.later(b.Leave)
			if len(tt.gone) == 1 {
				s.await("a", "c")
				s.take("a")
			}
			for range 20 {
				s.settle(client)
			}
			leaving.waits()
			s.take("c")
			leaving.returns()
		})
	}
}

// The lowest dies while it is in. The members that leave behind it end the round.
func TestLeaveLowestDiedInsideLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, others := range [][]string{{"a"}, {"a", "c"}, {"0", "a"}} {
		s := newInside(t, others...)
		s.settle(s.client)
		for _, o := range others {
			if o < "b" {
				s.take(o)
			}
		}
		c := s.later(s.member.Leave)
		if others[len(others)-1] == "c" {
			s.awaitWatch("c")
			c.waits()
			s.take("c")
		}
		c.returns()
		s.awaitNothing()
	}
}

// The lowest cancels its Leave. The members that leave behind it end the round.
func TestLeaveLowestCancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	a, b := s.member(s.client(), "a", 2), s.member(s.client(), "b", 2)
	entering := s.later(a.Enter)
	s.awaitWatch("ready")
	s.must(b.Enter(s.ctx))
	entering.returns()
	ctx, cancel := context.WithCancel(s.ctx)
	leaving := s.laterWith(ctx, a.Leave)
	s.awaitWatch("b")
	cancel()
	_ = leaving.err()
	s.await("b", "ready")
	s.must(b.Leave(s.ctx))
	s.awaitNothing()
}
