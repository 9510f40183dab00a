package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/barrier"
	"github.com/gocurator/curator/retry"
)

func TestDoubleBarrierLostReplies(t *testing.T) {
	t.Parallel()
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		forEveryLostReply(t, action, (*barrier.DistributedDoubleBarrier).Enter)
	}
}

// Without retries Enter may fail, and is called again. Leave does not fail for want of a connection.
func TestDoubleBarrierLostRepliesWithoutRetryLeaveNothing(t *testing.T) {
	t.Parallel()
	enter := func(d *barrier.DistributedDoubleBarrier, ctx context.Context) error {
		for {
			if err := d.Enter(ctx); !errors.Is(err, framework.ErrConnectionLoss) {
				return err
			}
		}
	}
	forEveryLostReply(t, curatortest.CutAfter, enter, framework.WithRetryPolicy(retry.NTimes(0, 0)))
}

// forEveryLostReply has two members enter and leave, twice, while something is done to the connection of one: at each
// of its requests in turn. It comes and goes before the other or after it, and has the lower name or the higher.
func forEveryLostReply(
	t *testing.T, action curatortest.Action, enter func(*barrier.DistributedDoubleBarrier, context.Context) error,
	opts ...framework.Option,
) {
	t.Helper()
	for _, name := range []string{"a", "c"} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, %s, first %t", action, name, first), func(t *testing.T) {
				t.Parallel()
				s := newBarrier(t)
				direct := s.client()
				for k, hit := 0, true; hit; k++ {
					client, faults := s.proxied(opts...)
					injection := faults.Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
					p := &pair{scene: s, enter: enter, first: s.member(client, name, 2), second: s.member(direct, "b", 2)}
					if !first {
						p.first, p.second = p.second, p.first
					}
					p.round()
					p.round()
					s.awaitNothing()
					s.must(client.Close())
					hit = injection.Hits() > 0
				}
			})
		}
	}
}

// pair are two members.
type pair struct {
	*scene
	enter         func(*barrier.DistributedDoubleBarrier, context.Context) error
	first, second *barrier.DistributedDoubleBarrier
}

// round has them enter and leave, the second when the first waits.
func (p *pair) round() {
	p.Helper()
	first := p.later(func(ctx context.Context) error { return p.enter(p.first, ctx) })
	p.awaitWatch("ready")
	first.waits()
	p.must(p.enter(p.second, p.ctx))
	first.returns()
	first = p.later(p.first.Leave)
	testenv.Eventually(p, func() bool {
		return slices.ContainsFunc(p.watches(), func(name string) bool { return len(name) == 1 })
	}, "the second is watched")
	first.waits()
	p.must(p.second.Leave(p.ctx))
	first.returns()
}
