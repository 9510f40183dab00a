package barrier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
)

// In Java: TestDistributedBarrier.testBasic, TestDistributedBarrier.testMultiClient.
func TestBarrierWaitersWaitForRemoval(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	owner := barrier.NewDistributedBarrier(s.client(), barrierPath)
	s.must(owner.SetBarrier(s.ctx))
	s.must(owner.SetBarrier(s.ctx))
	var waiting []*call
	for range 3 {
		waiting = append(waiting, s.later(barrier.NewDistributedBarrier(s.client(), barrierPath).WaitOnBarrier))
	}
	s.awaitWatch("")
	for _, c := range waiting {
		c.waits()
	}
	s.must(owner.RemoveBarrier(s.ctx))
	for _, c := range waiting {
		c.returns()
	}
	s.must(owner.RemoveBarrier(s.ctx))
	s.awaitNothing()
}

// In Java: TestDistributedBarrier.testNoBarrier.
func TestBarrierNotSetDoesNotBlock(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	b := barrier.NewDistributedBarrier(s.client(), barrierPath)
	s.must(b.WaitOnBarrier(s.ctx))
	s.must(b.WaitOnBarrier(s.ctx))
	s.awaitNothing()
}

func TestBarrierOutlivesSession(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client := s.client(framework.WithDefaultData([]byte("me")))
	s.must(barrier.NewDistributedBarrier(client, barrierPath).SetBarrier(s.ctx))
	data, stat, err := s.raw.Get(s.path(""))
	if err != nil || string(data) != "me" || stat.EphemeralOwner != 0 {
		t.Errorf("data %q, stat %+v, error %v", data, stat, err)
	}
	s.must(client.Close())
	c := s.laterWith(s.within(100*time.Millisecond), barrier.NewDistributedBarrier(s.client(), barrierPath).WaitOnBarrier)
	c.fails(context.DeadlineExceeded)
	s.awaitNoWatch()
}

func TestBarrierSetAgainAtOnceStillBlocks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	b := barrier.NewDistributedBarrier(s.client(), barrierPath)
	s.must(b.SetBarrier(s.ctx))
	c := s.later(b.WaitOnBarrier)
	s.awaitWatch("")
	_, err := s.raw.Multi(&zk.DeleteRequest{Path: s.path(""), Version: -1},
		&zk.CreateRequest{Path: s.path(""), Acl: zk.WorldACL(zk.PermAll)})
	s.must(err)
	s.awaitWatch("")
	c.waits()
	s.must(b.RemoveBarrier(s.ctx))
	c.returns()
}

func TestBarrierWaitSurvivesOutageAndSession(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	owner := barrier.NewDistributedBarrier(s.client(), barrierPath)
	s.must(owner.SetBarrier(s.ctx))
	client, faults := s.proxied(impatient...)
	c := s.later(barrier.NewDistributedBarrier(client, barrierPath).WaitOnBarrier)
	s.awaitWatch("")
	s.settle(client)
	for range 3 {
		s.cut(client, faults)
	}
	s.must(testenv.Server(t).ExpireSession(client.SessionID()))
	s.awaitWatch("")
	c.waits()
	restore := faults.RefuseConnects()
	faults.CutAll()
	s.outlast(client)
	s.must(owner.RemoveBarrier(s.ctx)) // while it is away
	restore()
	c.returns()
	s.awaitNothing()
}

func TestBarrierWaitCancelledAfterOutageRemovesWatch(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.must(barrier.NewDistributedBarrier(s.client(), barrierPath).SetBarrier(s.ctx))
	client, faults := s.proxied()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	c := s.laterWith(ctx, barrier.NewDistributedBarrier(client, barrierPath).WaitOnBarrier)
	s.awaitWatch("")
	for range 3 {
		s.cut(client, faults)
		s.awaitWatch("")
		s.settle(client)
	}
	cancel()
	c.fails(context.Canceled)
	s.awaitNoWatch()
}

// In Java: TestDistributedBarrier.testServerCrash.
func TestBarrierWaitFirstReadFailedFails(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client, faults := s.proxied(impatient...)
	faults.RefuseConnects()
	faults.CutAll()
	b := barrier.NewDistributedBarrier(client, barrierPath)
	for name, method := range map[string]func(context.Context) error{
		"set": b.SetBarrier, "remove": b.RemoveBarrier, "wait": b.WaitOnBarrier,
	} {
		if err := method(s.ctx); !errors.Is(err, framework.ErrConnectionLoss) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBarrierWaitClientClosedFails(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client := s.client()
	b := barrier.NewDistributedBarrier(client, barrierPath)
	s.must(b.SetBarrier(s.ctx))
	c := s.later(b.WaitOnBarrier)
	s.awaitWatch("")
	s.must(client.Close())
	c.fails(framework.ErrClosed)
}

// The connection is cut at each request in turn.
func TestBarrierLostReplies(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
		s := newScene(t)
		client, faults := s.proxied()
		injection := faults.Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
		b := barrier.NewDistributedBarrier(client, barrierPath)
		s.must(b.SetBarrier(s.ctx))
		c := s.later(b.WaitOnBarrier)
		s.awaitWatch("")
		s.must(b.RemoveBarrier(s.ctx))
		c.returns()
		s.awaitNothing()
		return injection.Hits() > 0
	})
}

func TestBarrierInvalidPathFails(t *testing.T) {
	b := barrier.NewDistributedBarrier(nil, "barrier")
	for name, method := range map[string]func(context.Context) error{
		"set": b.SetBarrier, "remove": b.RemoveBarrier, "wait": b.WaitOnBarrier,
	} {
		if err := method(testenv.Context(t)); !errors.Is(err, zk.ErrInvalidPath) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
