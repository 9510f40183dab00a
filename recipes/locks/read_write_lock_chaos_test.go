package locks_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
)

// reading and writing are what a hold of either side has of a read-write lock.
func (th *thing) reading(hold *locks.Hold, who int) *holding {
	return th.holds(hold, part{
		nodes:     []chaos.Grant{{Node: path.Base(hold.Path()), Owner: fmt.Sprint(who)}},
		granted:   chaos.ReadWriteOp{Who: who, Token: hold.Token()},
		givenBack: chaos.ReadWriteOp{Who: who, Release: true},
	})
}

func (th *thing) writing(hold *locks.Hold, who int) *holding {
	return th.holds(hold, part{
		nodes:     alone(hold.Path(), who),
		token:     hold.Token(),
		granted:   chaos.ReadWriteOp{Who: who, Write: true, Token: hold.Token()},
		givenBack: chaos.ReadWriteOp{Who: who, Write: true, Release: true},
	})
}

// TestReadWriteLockChaos has clients read, write, and read on when they have written, while connections are cut,
// sessions expire and networks freeze. No other client reads or writes while one writes, and no reader has an older
// token than a writer before it.
func TestReadWriteLockChaos(t *testing.T) {
	t.Parallel()
	s := newScene(t, crowdSize())
	for i := range 3 {
		s.add(fmt.Sprintf("/locks/%d", i), math.MaxInt, chaos.ReadWrite)
	}
	s.rage(mixedSize(), chaosPace, func(
		ctx context.Context, client *framework.Client, who int, random *rand.Rand,
	) (*holding, error) {
		th := s.things[random.IntN(len(s.things))]
		rw := locks.NewInterProcessReadWriteLock(client, th.line)
		ctx = locks.WithOwner(ctx)
		if random.IntN(3) > 0 {
			hold, err := rw.ReadLock().Acquire(ctx)
			if err != nil {
				return nil, err
			}
			return th.reading(hold, who), nil
		}
		hold, err := rw.WriteLock().Acquire(ctx)
		if err != nil {
			return nil, err
		}
		h := th.writing(hold, who)
		if random.IntN(2) == 0 {
			h.next = func() (*holding, error) {
				hold, err := rw.ReadLock().Acquire(ctx)
				if err != nil {
					return nil, err
				}
				return th.reading(hold, who), nil
			}
		}
		return h, nil
	}, s.clientFaults()...)
}
