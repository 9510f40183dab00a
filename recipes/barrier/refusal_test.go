package barrier_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
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

// Each request of one member is refused in turn. A call that fails leaves no node and no watch, and may be made again.
// The ready of a Leave that has failed may stay until the next member comes.
func TestDoubleBarrierRefusalThatPassesLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
				s := newBarrier(t)
				client, faults := s.proxied()
				injection := faults.Add(curatortest.Rule{
					Skip: k, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth, MayMiss: true,
				})
				members := []*barrier.DistributedDoubleBarrier{s.member(client, name, 2), s.member(s.client(), "b", 2)}
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
				return injection.Hits() > 0
			})
		})
	}
}
