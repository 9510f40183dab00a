package barrier_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/retry"
)

// The list that Enter sends for Leave is refused. Leave reads again.
func TestLeaveListRefusedDuringEnterWaitsForOthers(t *testing.T) {
	t.Parallel()
	s := newBarrier(t)
	client, faults := s.proxied()
	b := s.member(client, "b", 2)
	entering := s.later(b.Enter)
	s.awaitWatch("ready")
	s.awaitWatch("b")
	s.settle(client)
	refused := faults.Add(curatortest.Rule{
		Ops: []string{"getChildren2"}, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	})
	s.put("c")
	s.put("ready")
	entering.returns()
	s.must(refused.Wait(s.ctx))
	leaving := s.later(b.Leave)
	s.awaitWatch("c")
	leaving.waits()
	s.take("c")
	leaving.returns()
	s.awaitNothing()
}

// forEachRequestOfMember runs a test with two members once for each request of one of them, which the rule meets. That
// member is first the lowest, then the highest.
func forEachRequestOfMember(
	t *testing.T, rule curatortest.Rule, test func(t *testing.T, s *scene, members []*barrier.DistributedDoubleBarrier),
) {
	t.Helper()
	t.Parallel()
	for _, name := range []string{"a", "c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
				s := newBarrier(t)
				client, faults := s.proxied()
				rule := rule
				rule.Skip, rule.Action, rule.MayMiss = k, curatortest.ReplyError, true
				injection := faults.Add(rule)
				test(t, s, []*barrier.DistributedDoubleBarrier{s.member(client, name, 2), s.member(s.client(), "b", 2)})
				return injection.Hits() > 0
			})
		})
	}
}

// A call that fails leaves no node and no watch, and may be made again. The ready of a Leave that has failed may stay
// until the next member comes.
func TestDoubleBarrierRefusalThatPassesLeavesNothing(t *testing.T) {
	refusal := curatortest.Rule{Count: 1, Err: zk.ErrNoAuth}
	forEachRequestOfMember(t, refusal, func(t *testing.T, s *scene, members []*barrier.DistributedDoubleBarrier) {
		t.Helper()
		for range 2 {
			var entering, leaving []*call
			for _, m := range members {
				entering = append(entering, s.later(func(ctx context.Context) error {
					err := m.Enter(ctx)
					for errors.Is(err, zk.ErrNoAuth) {
						err = m.Enter(ctx)
					}
					return err
				}))
			}
			for _, c := range entering {
				c.returns()
			}
			for _, m := range members {
				leaving = append(leaving, s.later(m.Leave))
			}
			for _, c := range leaving {
				if err := c.err(); err != nil && !errors.Is(err, zk.ErrNoAuth) {
					t.Error(err)
				}
			}
		}
		testenv.Eventually(t, func() bool {
			return len(s.watches()) == 0 && !slices.ContainsFunc(s.children(), func(n string) bool { return n != "ready" })
		}, "neither a member nor a watch is left")
	})
}

func TestDoubleBarrierThrottledEntersAndLeaves(t *testing.T) {
	throttled := curatortest.Rule{Count: 2, Err: framework.ErrThrottledOp}
	forEachRequestOfMember(t, throttled, func(t *testing.T, s *scene, members []*barrier.DistributedDoubleBarrier) {
		t.Helper()
		for range 2 {
			for _, method := range []func(*barrier.DistributedDoubleBarrier, context.Context) error{
				(*barrier.DistributedDoubleBarrier).Enter, (*barrier.DistributedDoubleBarrier).Leave,
			} {
				var calls []*call
				for _, m := range members {
					calls = append(calls, s.later(func(ctx context.Context) error { return method(m, ctx) }))
				}
				for _, c := range calls {
					c.returns()
				}
			}
		}
		s.awaitNothing()
	})
}

// The reads of a waiter are throttled, and the client does not retry them.
func TestBarrierThrottledWaiterWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client, faults := s.proxied(framework.WithRetryPolicy(retry.NTimes(0, time.Millisecond)))
	b := barrier.NewDistributedBarrier(client, barrierPath)
	s.must(b.SetBarrier(s.ctx))
	waiting := s.later(b.WaitOnBarrier)
	s.awaitWatch("")
	_, err := client.CheckExists().ForPath(s.ctx, barrierPath)
	s.must(err) // answers come in order: the waiter's first read, which may not fail, has its own too
	throttled := faults.Add(curatortest.Rule{
		Ops: []string{"getData"}, Count: 10, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp,
	})
	faults.CutAll() // it looks again
	testenv.Eventually(t, func() bool { return throttled.Hits() == 10 }, "the reads are throttled")
	waiting.waits()
	s.must(b.RemoveBarrier(s.ctx))
	waiting.returns()
}
