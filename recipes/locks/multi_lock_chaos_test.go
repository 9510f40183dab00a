package locks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

// seen is a lock that keeps what it was granted last.
type seen struct {
	locks.InterProcessLock
	hold *locks.Hold
}

func (l *seen) Acquire(ctx context.Context) (hold *locks.Hold, err error) {
	l.hold, err = l.InterProcessLock.Acquire(ctx)
	return l.hold, err
}

// TestMultiLockChaos has clients take two locks of different kinds at once, or one of them alone, while connections are
// cut, sessions expire and networks freeze. At most one holds each of the locks.
func TestMultiLockChaos(t *testing.T) {
	t.Parallel()
	s := newScene(t, crowdSize())
	const many = 6
	for i := range many {
		line := fmt.Sprintf("/locks/%d", i)
		if i%2 == 1 { // where a semaphore mutex has its lease
			line += "/leases"
		}
		s.add(line, 0, chaos.Lock)
	}
	member := func(client *framework.Client, i int) *seen {
		if i%2 == 1 {
			return &seen{InterProcessLock: locks.NewInterProcessSemaphoreMutex(client, zkpath.Parent(s.things[i].line))}
		}
		return &seen{InterProcessLock: locks.NewInterProcessMutex(client, s.things[i].line)}
	}
	s.rage(mixedSize(), chaosPace, func(
		ctx context.Context, client *framework.Client, who int, random *rand.Rand,
	) (*holding, error) {
		i, j := random.IntN(many), random.IntN(many-1)
		if random.IntN(3) == 0 {
			hold, err := member(client, i).Acquire(ctx)
			if err != nil {
				return nil, err
			}
			return s.things[i].holds(hold, s.things[i].held(hold, who)), nil
		}
		if j >= i {
			j++
		}
		i, j = min(i, j), max(i, j) // in one order: else they may wait for each other
		first, second := member(client, i), member(client, j)
		hold, err := locks.NewInterProcessMultiLock(first, second).Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &holding{
			parts:   []part{s.things[i].held(first.hold, who), s.things[j].held(second.hold, who)},
			ctx:     hold.Context(),
			release: hold.Release,
		}, nil
	}, s.clientFaults()...)
}
