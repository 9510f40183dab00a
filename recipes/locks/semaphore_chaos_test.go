package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

// TestSemaphoreChaos has clients take one or several leases while connections are cut, sessions expire and networks
// freeze. There are never more than there may be.
func TestSemaphoreChaos(t *testing.T) {
	t.Parallel()
	s := newScene(t, crowdSize())
	const most = 5
	for i := range most {
		s.add(fmt.Sprintf("/semaphores/%d/leases", i+1), i+1, chaos.Leases(i+1))
	}
	s.rage(mixedSize(), chaosPace, func(
		ctx context.Context, client *framework.Client, who int, random *rand.Rand,
	) (*holding, error) {
		permits := 1 + random.IntN(most)
		th := s.things[permits-1]
		semaphore := locks.NewInterProcessSemaphoreV2(client, zkpath.Parent(th.line), permits)
		n := 1
		if random.IntN(4) == 0 {
			n += random.IntN(permits)
		}
		leases, err := semaphore.AcquireN(ctx, n)
		if err != nil {
			return nil, err
		}
		p := part{thing: th, granted: chaos.LeaseOp(n), givenBack: chaos.LeaseOp(-n)}
		for _, lease := range leases {
			p.nodes = append(p.nodes, chaos.Grant{Node: path.Base(lease.Path()), Owner: fmt.Sprint(who)})
		}
		return &holding{
			parts:   []part{p},
			ctx:     leases[0].Context(),
			release: func(ctx context.Context) error { return semaphore.ReturnAll(ctx, leases...) },
		}, nil
	}, s.clientFaults()...)
}
