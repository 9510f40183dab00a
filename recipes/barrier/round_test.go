package barrier_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
)

// held has a request held, if there is one, until the call that it belongs to has returned or the request has come.
func (s *scene) held(c *call, injection *curatortest.Injection) {
	s.Helper()
	testenv.Eventually(s, func() bool { return len(c.end) > 0 || injection.Hits() > 0 },
		"the request, or the end of the call")
}

// nextRound has two others come and open the barrier, and returns the ready that they have made.
func (s *scene) nextRound(names ...string) *zk.Stat {
	s.Helper()
	for _, name := range append(names, "ready") {
		s.put(name)
	}
	_, ready, err := s.raw.Get(s.path("ready"))
	s.must(err)
	return ready
}

// wantReady fails the test if there is not that ready.
func (s *scene) wantReady(want *zk.Stat) {
	s.Helper()
	if _, got, err := s.raw.Get(s.path("ready")); err != nil || got.Czxid != want.Czxid {
		s.Errorf("ready %+v, error %v, want %+v", got, err, want)
	}
}

func TestDoubleBarrierLeaveAfterLowestDiedKeepsReadyOfNextRound(t *testing.T) {
	t.Parallel()
	s := newInside(t, "a")
	c := s.later(s.member.Leave)
	s.awaitWatch("a")
	held := s.faults.Add(curatortest.Rule{
		Ops: []string{"delete"}, Path: s.path("ready"), Action: curatortest.HoldRequest, MayMiss: true,
	})
	s.take("a") // it dies
	s.held(c, held)
	s.take("ready")
	next := s.nextRound("d", "e")
	held.Remove()
	c.returns()
	s.wantReady(next)
}

func TestDoubleBarrierEndWithLostReplyKeepsReadyOfNextRound(t *testing.T) {
	t.Parallel()
	s := newInside(t, "c")
	c := s.later(s.member.Leave)
	s.awaitWatch("c")
	s.faults.Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
	held := s.faults.Add(curatortest.Rule{
		Ops: []string{"delete"}, Path: s.path("ready"), Action: curatortest.HoldRequest, MayMiss: true,
	})
	s.take("c")
	s.held(c, held)
	s.await()
	next := s.nextRound("d", "e")
	held.Remove()
	c.returns()
	s.wantReady(next)
}

// newAlone is a scene with a member "b" that is in alone.
func newAlone(t *testing.T) *inside {
	t.Helper()
	s := &inside{scene: newBarrier(t)}
	s.client, s.faults = s.proxied()
	s.member = s.scene.member(s.client, "b", 1)
	s.must(s.member.Enter(s.ctx))
	return s
}

func TestDoubleBarrierCancelledLeaveKeepsReadyOfNextRound(t *testing.T) {
	t.Parallel()
	s := newAlone(t)
	held := s.faults.Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldReply})
	readyHeld := s.faults.Add(curatortest.Rule{
		Ops: []string{"delete"}, Path: s.path("ready"), Action: curatortest.HoldRequest, MayMiss: true,
	})
	ctx, cancel := context.WithCancel(s.ctx)
	c := s.laterWith(ctx, s.member.Leave)
	s.must(held.Wait(s.ctx))
	cancel()
	c.fails(context.Canceled)
	s.await()
	next := s.nextRound("d", "e")
	held.Remove()
	readyHeld.Remove()
	s.must(s.member.Enter(s.ctx)) // behind all that Leave has left to the background
	s.wantReady(next)
}

func TestDoubleBarrierLeaveOfLostSessionIgnoresNextRound(t *testing.T) {
	t.Parallel()
	for name, others := range map[string][]string{
		"with others":                        {"d", "e"},
		"with the same":                      {"a", "c"},
		"with the same and lower and others": {"0", "a", "c", "d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInside(t, "a", "c")
			s.settle(s.client)
			s.must(testenv.Server(t).ExpireSession(s.client.SessionID()))
			s.await("a", "c", "ready")
			s.take("a", "c", "ready")
			next := s.nextRound(others...)
			s.later(s.member.Leave).returns()
			s.wantReady(next)
		})
	}
}

// The lowest member has seen no other, and before it ends the round two more come: they are in, and all wait for each
// other.
func TestDoubleBarrierLateMembersKeepRoundOpen(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	a, b := s.member(client, "a", 2), s.member(s.client(), "b", 2)
	entering := s.later(a.Enter)
	s.awaitWatch("ready")
	s.must(b.Enter(s.ctx))
	entering.returns()
	end := faults.Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	leaving := []*call{s.later(b.Leave), s.later(a.Leave)}
	s.must(end.Wait(s.ctx))
	c, d := s.member(s.client(), "c", 2), s.member(s.client(), "d", 2)
	s.must(d.Enter(s.ctx))
	s.must(c.Enter(s.ctx))
	leaving = append(leaving, s.later(c.Leave))
	s.await("a", "d", "ready")
	end.Release()
	s.awaitWatch("d")
	for _, l := range leaving {
		l.waits()
	}
	s.must(d.Leave(s.ctx))
	for _, l := range leaving {
		l.returns()
	}
	s.awaitNothing()
}

// A member that comes when the round is about to end is not counted in the next one as a member.
func TestDoubleBarrierLateMemberAfterEndWaitsForNextRound(t *testing.T) {
	t.Parallel()
	s := newAlone(t)
	late, faults := s.proxied()
	joining := faults.Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	d := s.scene.member(late, "d", 2)
	entering := s.later(d.Enter)
	s.must(joining.Wait(s.ctx)) // it has seen ready
	s.take("b", "ready")
	joining.Release()
	s.awaitWatch("ready")
	s.await("d")
	entering.waits()
	s.put("e")
	s.put("ready")
	entering.returns()
}

func TestBarriersWithCompressionReadPlainData(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client := s.client(framework.WithCompression())
	plain := func(name string, flags int32) {
		_, err := s.raw.Create(s.path(name), []byte("192.0.2.1"), flags, zk.WorldACL(zk.PermAll))
		s.must(err)
	}
	gate := s.later(barrier.NewDistributedBarrier(client, barrierPath).WaitOnBarrier)
	s.awaitWatch("")
	gate.waits()
	for _, other := range []string{"a", "c"} {
		b := s.member(client, "b", 2)
		entering := s.later(b.Enter)
		s.awaitWatch("ready")
		plain(other, zk.FlagEphemeral)
		plain("ready", 0)
		entering.returns()
		leaving := s.later(b.Leave)
		s.awaitWatch(other)
		leaving.waits()
		s.take(other)
		if other == "a" {
			s.take("ready")
		}
		leaving.returns()
		s.await()
	}
	s.take("")
	gate.returns()
}

// Others have run a round of their own and crashed since our last.
func TestDoubleBarrierReadyOfCrashSinceLastRoundIsCleared(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	a, b := s.member(s.client(), "a", 2), s.member(s.client(), "b", 2)
	round := func() {
		entering := s.later(a.Enter)
		s.awaitWatch("ready")
		s.await("a")
		entering.waits()
		s.must(b.Enter(s.ctx))
		entering.returns()
		leaving := s.later(a.Leave)
		s.must(b.Leave(s.ctx))
		leaving.returns()
	}
	round()
	s.put("ready")
	round()
	s.awaitNothing()
}

// The lowest has ended the round and comes again before we watch it.
func TestDoubleBarrierLowestOfNextRoundIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newInside(t, "a")
	held := s.faults.Add(curatortest.Rule{
		Ops: []string{"getData"}, Path: s.path("a"), Count: 1, Action: curatortest.HoldRequest,
	})
	c := s.later(s.member.Leave)
	s.must(held.Wait(s.ctx))
	s.await("a", "ready")
	s.take("ready")
	s.again("a")
	held.Release()
	c.returns()
}

// The members are listed behind the opening. A list that comes when ready is gone may show members that came again.
func TestDoubleBarrierListWithoutReadyIsIgnored(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	b := s.member(client, "b", 2)
	entering := s.later(b.Enter)
	s.awaitWatch("ready")
	s.settle(client)
	held := faults.Add(curatortest.Rule{Ops: []string{"getChildren2"}, Count: 1, Action: curatortest.HoldRequest})
	s.put("c")
	s.put("ready")
	entering.returns()
	s.must(held.Wait(s.ctx))
	s.take("ready")
	s.again("c")
	held.Release()
	s.later(b.Leave).returns()
	s.await("c")
}
