package barrier_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/barrier"
)

// entering is a scene with a member "b" of two that waits for the other.
func entering(
	t *testing.T, opts ...framework.Option,
) (s *scene, client *framework.Client, faults *curatortest.Faults, c *call) {
	t.Helper()
	s = newBarrier(t)
	client, faults = s.proxied(opts...)
	c = s.later(s.member(client, "b", 2).Enter)
	s.awaitWatch("b") // set a moment after the first look is complete
	s.settle(client)
	return s, client, faults, c
}

// GH-1290, and what its repair in Java has broken: all the others are gone already when the slow one looks.
func TestEnterOpeningEndedAtOnceIsNotMissed(t *testing.T) {
	t.Parallel()
	s, _, _, c := entering(t)
	_, err := s.raw.Multi(&zk.CreateRequest{Path: s.path("ready"), Acl: zk.WorldACL(zk.PermAll)},
		&zk.DeleteRequest{Path: s.path("ready"), Version: -1})
	s.must(err)
	c.returns()
	s.await("b")
}

// The last member should open the barrier, and may have died.
func TestEnterLastMemberSilentAnotherOpens(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	looking := faults.Add(curatortest.Rule{Ops: []string{"getChildren2"}, Count: 1, Action: curatortest.HoldRequest})
	c := s.later(s.member(client, "b", 2).Enter)
	s.must(looking.Wait(s.ctx)) // behind its create
	s.await("b")
	s.put("c")
	looking.Release()
	c.returns()
	s.await("b", "c", "ready")
}

// In Java: TestDistributedDoubleBarrier.testSpuriousWakeup (GH-1290).
func TestEnterSpuriousWakeUpKeepsWaiting(t *testing.T) {
	t.Parallel()
	s, client, faults, c := entering(t)
	for range 5 {
		s.cut(client, faults)
		s.awaitWatch("ready")
	}
	c.waits()
	s.put("c")
	faults.CutAll() // without an event: the member that is woken sees it
	c.returns()
	s.await("b", "c", "ready")
}

// TestGH1290TimedEnterDoesNotPassAfterSessionEvents: in Java a timed enter returns true after any session event. Here
// the connection is lost and comes back, then the session ends: Enter waits until its time is up.
func TestGH1290TimedEnterDoesNotPassAfterSessionEvents(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	ctx, cancel := context.WithCancel(s.ctx) // the time limit, which the test ends
	defer cancel()
	c := s.laterWith(ctx, s.member(client, "b", 2).Enter)
	s.awaitWatch("ready")
	s.settle(client)
	for range 3 {
		s.cut(client, faults)
		s.awaitWatch("ready")
		s.settle(client)
		c.waits()
	}
	old := client.SessionID()
	s.must(testenv.Server(t).ExpireSession(old))
	s.awaitNewNode(client, old)
	s.awaitWatch("ready")
	s.settle(client)
	c.waits()
	cancel()
	c.fails(context.Canceled)
	s.awaitNothing()
}

func TestEnterOpenedDuringOutageEnters(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*scene){
		"it is open":                           func(s *scene) { s.put("c"); s.put("ready") },
		"it is open, and the other has gone":   func(s *scene) { s.put("c"); s.put("ready"); s.take("c") },
		"it is closed, and the other is there": func(s *scene) { s.put("c"); s.put("ready"); s.take("ready") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, faults, c := entering(t)
			restore := faults.RefuseConnects()
			faults.CutAll()
			open(s)
			c.waits()
			restore()
			c.returns()
		})
	}
}

func TestEnterOutageKeepsWaiting(t *testing.T) {
	t.Parallel()
	s, client, faults, c := entering(t, impatient...)
	restore := faults.RefuseConnects()
	faults.CutAll()
	s.outlast(client)
	c.waits()
	s.put("c") // while it is away: only this member can open the barrier
	restore()
	c.returns()
}

func TestEnterSessionExpiredCreatesNodeAgain(t *testing.T) {
	t.Parallel()
	s, client, _, c := entering(t)
	old := client.SessionID()
	s.must(testenv.Server(t).ExpireSession(old))
	s.awaitNewNode(client, old)
	c.waits()
	s.put("c")
	s.put("ready")
	c.returns()
}

// The session of a member that waits ends, without an event. Has a round begun meanwhile, the others may have counted
// the member. In the next round it would stay one behind them for ever.
func TestEnterSessionExpiredAfterMemberWasCounted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		while func(s *scene)
		then  func(s *scene, c *call)
	}{
		{
			"the round is over",
			func(s *scene) { s.put("c"); s.put("ready"); s.take("ready", "c") },
			func(s *scene, c *call) {
				c.fails(barrier.ErrSessionEnded)
				s.awaitNothing()
			},
		},
		{
			"the round is over, and the next member is there",
			func(s *scene) { s.put("c"); s.put("ready"); s.take("ready", "c"); s.put("c") },
			func(s *scene, c *call) {
				c.fails(barrier.ErrSessionEnded)
				s.await("c")
			},
		},
		{
			"the barrier was deleted",
			func(s *scene) { s.put("c"); s.put("ready"); s.take("ready", "c", "b", "") },
			func(s *scene, c *call) {
				c.fails(barrier.ErrSessionEnded)
				s.awaitNothing()
			},
		},
		{
			"the other is in",
			func(s *scene) { s.put("c"); s.put("ready") },
			func(_ *scene, c *call) { c.returns() },
		},
		{
			"the other has come",
			func(s *scene) { s.put("c") },
			func(_ *scene, c *call) { c.returns() },
		},
		{
			"the other has come and gone: a round may have begun and ended",
			func(s *scene) { s.put("c"); s.take("c") },
			func(s *scene, c *call) {
				c.fails(barrier.ErrSessionEnded)
				s.awaitNothing()
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, client, faults, c := entering(t)
			restore := faults.RefuseConnects()
			faults.CutAll()
			tt.while(s)
			s.must(testenv.Server(t).ExpireSession(client.SessionID()))
			c.waits()
			restore()
			tt.then(s, c)
		})
	}
}

// The reply of the create is lost with the session: the others may have counted the node.
func TestEnterSessionExpiredBeforeFirstReplyFails(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	injection := faults.Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.CutAfter})
	restore := faults.RefuseConnects()
	c := s.later(s.member(client, "b", 2).Enter)
	s.must(injection.Wait(s.ctx))
	s.await("b")
	s.put("c")
	s.put("ready")
	s.take("ready", "c")
	s.must(testenv.Server(t).ExpireSession(client.SessionID()))
	s.await()
	restore()
	c.fails(barrier.ErrSessionEnded)
	s.awaitNothing()
}

// CURATOR-498: the node of the old session is at the server until its timeout, and then gone.
func TestEnterNodeOfEarlierSessionIsReplaced(t *testing.T) {
	t.Parallel()
	s, client, _, c := entering(t)
	old := client.SessionID()
	s.must(client.Reset())
	s.awaitNewNode(client, old)
	c.waits()
	s.put("c")
	s.put("ready")
	c.returns()
}

func TestEnterCreateOfEarlierSessionIsNotAdopted(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	injection := faults.Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
	c := s.later(s.member(client, "b", 2).Enter)
	s.must(injection.Wait(s.ctx))
	s.must(client.Reset())           // the reply may not come before the connection has gone
	c.fails(barrier.ErrSessionEnded) // the others may have counted that node
	s.awaitNothing()
}

// slowCaller is a context whose caller stops, at each request, until time passes or a session has replaced another.
type slowCaller struct {
	context.Context
	sent, renewed chan struct{}
}

func (c slowCaller) Err() error {
	select {
	case <-c.sent:
		<-c.renewed
	case <-time.After(time.Millisecond): // of the bubble: nothing is on its way
	}
	return c.Context.Err()
}

// The session ends when the create is sent, and before the list is: the list belongs to the next session.
func TestEnterSessionExpiredBetweenCreateAndListFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		ctx := slowCaller{testenv.Context(t), make(chan struct{}), make(chan struct{})}
		testclient.Must(t, client.CreateContainers(t.Context(), "/barrier"))
		created := server.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
		go func() {
			defer close(ctx.renewed)
			if err := created.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			close(ctx.sent)
			session := client.Session()
			if err := server.ExpireSession(session.ID()); err != nil {
				t.Error(err)
			}
			<-session.Context().Done()
			if err := client.BlockUntilConnected(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		err := barrier.NewDistributedDoubleBarrier(client, "/barrier", 2).Enter(ctx)
		if !errors.Is(err, barrier.ErrSessionEnded) {
			t.Errorf("got %v, want barrier.ErrSessionEnded", err)
		}
	})
}

func TestEnterNodeDeletedIsCreatedAgain(t *testing.T) {
	t.Parallel()
	s, _, faults, c := entering(t)
	for range 2 {
		s.take("b")
		s.await("b")
	}
	c.waits()
	s.put("c")
	faults.CutAll() // no member opens the barrier: the one that is woken sees that all are there
	c.returns()
}

func TestEnterBarrierDeletedIsCreatedAgain(t *testing.T) {
	t.Parallel()
	s, _, faults, c := entering(t)
	s.take("b", "")
	faults.CutAll()
	s.await("b")
	s.put("c")
	faults.CutAll()
	c.returns()
}

// All have been seen; before that is said, the other one gives up and our session is lost. What was seen is not true
// any more, and a ready that comes late would let the next round through.
func TestEnterNodeGoneDoesNotOpen(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	s.put("c")
	injection := faults.Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	c := s.later(s.member(client, "b", 2).Enter)
	s.must(injection.Wait(s.ctx))
	s.take("c")
	old := client.SessionID()
	s.must(testenv.Server(t).ExpireSession(old))
	injection.Release()
	s.awaitNewNode(client, old)
	s.awaitWatch("ready")
	s.await("b")
	c.waits()
	s.put("c")
	s.put("ready")
	c.returns()
}

// The last member that was in dies after it was seen, and before the late one has signed up.
func TestEnterDesertedRoundIsNotJoined(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	s.put("a")
	s.put("ready")
	injection := faults.Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	c := s.later(s.member(client, "b", 2).Enter)
	s.must(injection.Wait(s.ctx))
	s.take("a")
	injection.Release()
	s.await("b") // it has cleared ready
	c.waits()
	s.put("c")
	s.put("ready")
	c.returns()
}

// The read that watches the node of a member is refused for a while. Meanwhile another client deletes the node.
func TestEnterRefusalThatPassesDelaysANewNode(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	refusal := faults.Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
	c := s.later(s.member(client, "b", 2).Enter)
	s.must(refusal.Wait(s.ctx))
	s.take("b")
	refusal.Remove()
	s.await("b")
	s.put("a")
	s.put("ready")
	c.returns()
}

func TestEnterListRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"getChildren2", "create2", "multi"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			s := newBarrier(t)
			for k, hit := 0, true; hit; k++ {
				client, faults := s.proxied()
				injection := faults.Add(curatortest.Rule{
					Ops: []string{op}, Skip: k, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth, MayMiss: k > 0,
				})
				d := s.member(client, "b", 1)
				err := d.Enter(s.ctx)
				injection.Remove()
				if hit = injection.Hits() > 0; !hit {
					s.must(err)
					s.must(d.Leave(s.ctx))
				} else if !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("%d: got %v", k, err)
				}
				s.awaitNothing()
			}
		})
	}
}

// The last to come has seen that all are there, and before its watch is set another opens the barrier.
func TestEnterOpenedByAnotherRemovesWatch(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	s.put("a")
	client, faults := s.proxied()
	held := faults.Add(curatortest.Rule{Ops: []string{"exists"}, Count: 1, Action: curatortest.HoldRequest})
	entering := s.later(s.member(client, "b", 2).Enter)
	s.must(held.Wait(s.ctx))
	s.put("ready")
	held.Release()
	entering.returns()
	s.await("a", "b", "ready")
	s.awaitNoWatch()
}

func TestEnterCancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	s, client, _, c := entering(t)
	ctx, cancel := context.WithCancel(s.ctx)
	second := s.laterWith(ctx, s.member(client, "d", 5).Enter)
	s.await("b", "d")
	cancel()
	second.fails(context.Canceled)
	s.await("b")
	c.waits()
	late := s.member(client, "e", 5)
	s.wantErr(late.Enter(s.within(50*time.Millisecond)), context.DeadlineExceeded)
	s.wantErr(late.Enter(ctx), context.Canceled)
	s.await("b")
	s.put("c")
	s.put("ready")
	c.returns()
	s.settle(client) // it has listed for Leave, and watches ready
	s.take("b", "c", "ready")
	s.awaitNothing()
}

func TestEnterCancelledBeforeReplyLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"getChildren2", "create2", "exists", "multi"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			s := newBarrier(t)
			client, faults := s.proxied()
			held := faults.Add(curatortest.Rule{Ops: []string{op}, Count: 1, Action: curatortest.HoldReply})
			ctx, cancel := context.WithCancel(s.ctx)
			d := s.member(client, "b", 1)
			c := s.laterWith(ctx, d.Enter)
			s.must(held.Wait(s.ctx))
			cancel()
			c.fails(context.Canceled)
			held.Release()
			s.must(d.Enter(s.ctx)) // on nothing that is left
			s.must(d.Leave(s.ctx))
			s.awaitNothing()
		})
	}
}

func TestEnterWaitsForCleanupOfLast(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	d := s.member(client, "b", 2)
	ctx, cancel := context.WithCancel(s.ctx)
	c := s.laterWith(ctx, d.Enter)
	s.awaitWatch("ready")
	deletion := faults.Add(curatortest.Rule{Ops: []string{"delete"}, Count: 1, Action: curatortest.HoldRequest})
	cancel()
	c.fails(context.Canceled)
	s.must(deletion.Wait(s.ctx))
	s.put("c")
	if err := d.Enter(s.within(50 * time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("entered on a node that is being deleted: %v", err)
	}
	c = s.later(d.Enter)
	deletion.Release()
	c.returns()
	s.await("b", "c", "ready")
}

// After a crash of all members, what is left of it opens no barrier.
func TestEnterReadyOfCrashIsCleared(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	s.put("ready")
	first, second := s.member(s.client(), "a", 2), s.member(s.client(), "b", 2)
	c := s.later(first.Enter)
	s.await("a")
	s.awaitWatch("ready")
	c.waits()
	s.must(second.Enter(s.ctx))
	c.returns()
	c = s.later(first.Leave)
	s.must(second.Leave(s.ctx))
	c.returns()
	s.awaitNothing()
}

func TestEnterTogetherAfterCrashWaitsForAll(t *testing.T) {
	t.Parallel()
	const members, rounds = 4, 5
	for range rounds {
		s := newBarrier(t)
		var all []*barrier.DistributedDoubleBarrier
		for range members {
			all = append(all, barrier.NewDistributedDoubleBarrier(s.client(), barrierPath, members))
		}
		s.put("ready")
		var calls []*call
		for _, d := range all[1:] {
			calls = append(calls, s.later(d.Enter))
		}
		testenv.Eventually(t, func() bool { return len(s.children()) == members-1 }, "all but one are there")
		for _, c := range calls {
			c.waits()
		}
		s.must(all[0].Enter(s.ctx))
		for _, c := range calls {
			c.returns()
		}
	}
}

func TestEnterLateJoinsRound(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	s.put("c")
	s.put("ready")
	s.must(s.member(s.client(), "b", 2).Enter(s.ctx))
	s.await("b", "c", "ready")
}

// In Java: TestDistributedDoubleBarrier.testServerCrash.
func TestEnterFirstReadFailedFails(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client, faults := s.proxied(impatient...)
	faults.RefuseConnects()
	faults.CutAll()
	s.wantErr(s.member(client, "b", 2).Enter(s.ctx), framework.ErrConnectionLoss)
}

// The parents are made behind the watch of ready. A round of others that is over before our node is there is not ours.
func TestEnterReadyOlderThanNodeIsNotOurRound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client, faults := s.proxied()
	refusal := faults.Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
	c := s.later(s.member(client, "b", 2).Enter)
	s.must(refusal.Wait(s.ctx))
	for _, p := range []string{s.chroot + "/barriers", s.path("")} {
		_, err := s.raw.Create(p, nil, 0, zk.WorldACL(zk.PermAll))
		s.must(err)
	}
	s.awaitWatch("ready")
	for _, name := range []string{"c", "d", "ready"} {
		s.put(name)
	}
	s.take("c", "d", "ready")
	refusal.Release()
	s.await("b")
	s.awaitWatch("ready")
	for range 20 {
		s.settle(client)
	}
	c.waits()
	s.put("c")
	s.put("ready")
	c.returns()
}

// A node that may not be deleted counts for the others until it may be. So its member does not enter beside it.
func TestEnterNodeOfLastRefusedToDeleteIsNotCountedTwice(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	d := barrier.NewDistributedDoubleBarrier(client, barrierPath, 2)
	ctx, cancel := context.WithCancel(s.ctx)
	c := s.laterWith(ctx, d.Enter)
	s.awaitWatch("ready")
	allow := func(perms int32) {
		_, err := client.SetACL().WithACL(zk.WorldACL(perms)...).ForPath(s.ctx, barrierPath)
		s.must(err)
	}
	allow(zk.PermAll &^ zk.PermDelete)
	refusal := faults.Add(curatortest.Rule{Ops: []string{"delete"}, Count: 1, Action: curatortest.HoldReply})
	cancel()
	c.fails(context.Canceled)
	s.must(refusal.Wait(s.ctx))
	refusal.Release()
	s.settle(client)
	testenv.Eventually(t, func() bool {
		err := d.Enter(s.within(50 * time.Millisecond))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("entered alone: %v", err)
		}
		return errors.Is(err, zk.ErrNoAuth)
	}, "the error has the reason")
	allow(zk.PermAll)
	c = s.later(d.Enter)
	s.awaitWatch("ready")
	s.put("c")
	s.put("ready")
	c.returns()
}
