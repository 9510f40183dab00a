package atomic_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

func TestCachedNumbersOfManyGoroutinesComeOnce(t *testing.T) {
	t.Parallel()
	const callers, each = 8, 25
	inScene(t, func(s *scene) {
		ids := atomic.NewCachedAtomicLong(s.long(), 7)
		others := atomic.NewCachedAtomicLong(s.otherLong(), 3)
		var mu sync.Mutex
		var got []int64
		var wg sync.WaitGroup
		for i := range callers {
			from := ids
			if i%2 == 1 {
				from = others
			}
			wg.Go(func() {
				for range each {
					r, err := from.Next(s.ctx)
					if err != nil || !r.Succeeded || r.Post != r.Pre+1 {
						s.Errorf("got %+v, %v", r, err)
					}
					mu.Lock()
					got = append(got, r.Pre)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(got)
		if n := len(slices.Compact(got)); n != callers*each {
			s.Errorf("%d different numbers, want %d", n, callers*each)
		}
	})
}

func TestCachedNumberFactor(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		integer := atomic.NewDistributedAtomicInteger(s.client, counterPath, patient)
		for _, factor := range []int{0, -1, math.MaxInt32 + 1} {
			_, err := atomic.NewCachedAtomicInteger(integer, factor).Next(s.ctx)
			s.wantErr(err, framework.ErrBadArguments)
		}
		for _, factor := range []int{1, 2} {
			ids := atomic.NewCachedAtomicInteger(integer, factor)
			s.must(integer.ForceSet(s.ctx, 10))
			for i := range int32(5) {
				r, err := ids.Next(s.ctx)
				r.Stats = atomic.Stats{}
				wantResult(s, r, err, atomic.Result[int32]{Succeeded: true, Pre: 10 + i, Post: 11 + i})
			}
		}
	})
}

// Without a number there is an error, so that a caller who checks only that does not use the number of another process.
func TestCachedNumberOthersAreFasterIsAnError(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 5))
		ids := atomic.NewCachedAtomicLong(atomic.NewDistributedAtomicLong(s.client, counterPath, retry.NTimes(0, 0)), 10)
		var r atomic.Result[int64]
		var err error
		s.overtaken(func() { r, err = ids.Next(s.ctx) })
		s.wantErr(err, atomic.ErrConflict)
		if want := "atomic: next number of " + counterPath + ": lost every race with other writers"; err.Error() != want {
			s.Errorf("got %q, want %q", err, want)
		}
		if r.Stats.OptimisticTries != 1 || r.Succeeded || r.Pre != 0 || r.Post != 0 {
			s.Errorf("got %+v", r)
		}
		r, err = ids.Next(s.ctx)
		wantResult(s, r, err, applied(105, 106))
		s.wantNumber(115)
	})
}

// A block whose outcome is not known is left out.
func TestCachedNumberOfUncertainBlockIsLeftOut(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 0))
		ids := atomic.NewCachedAtomicLong(s.long(), 10)
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
		r, err := ids.Next(s.ctx)
		s.wantErr(err, atomic.ErrUncertain)
		if r.Succeeded || r.Pre != 0 || r.Post != 0 {
			s.Errorf("got %+v", r)
		}
		r, err = ids.Next(s.ctx)
		wantResult(s, r, err, applied(10, 11))
	})
}
