package atomic_test

import (
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/atomic"
)

// A server without a vote is behind the others, and passes writes on.
func TestNumberThroughObserver(t *testing.T) {
	t.Parallel()
	testenv.OnObserver(t, func(t *testing.T, observer, leader testenv.Place) {
		s := &scene{TB: t, ctx: testenv.Context(t), place: observer}
		s.client, s.other = s.connect(observer), s.connect(leader)
		const each = 50
		for name, opts := range map[string][]atomic.Option{
			"without receipts": nil, "with receipts": {atomic.WithReceipts(receiptsPath)},
		} {
			near, far := s.long(opts...), s.otherLong()
			s.must(far.ForceSet(s.ctx, 0))
			var wg sync.WaitGroup
			for _, n := range []*atomic.DistributedAtomicLong{near, far} {
				wg.Go(func() {
					for range each {
						if r, err := n.Increment(s.ctx); err != nil || !r.Succeeded {
							t.Errorf("%s: got %+v, %v", name, r, err)
						}
					}
				})
			}
			wg.Wait()
			s.wantNumber(2 * each)
			for i := range int64(20) { // no false no, whatever the observer has seen
				s.must(far.ForceSet(s.ctx, 1000*i))
				r, err := near.CompareAndSet(s.ctx, 1000*i, 1000*i+1)
				wantResult(s, r, err, applied(1000*i, 1000*i+1))
				r, err = far.Increment(s.ctx)
				wantResult(s, r, err, applied(1000*i+1, 1000*i+2))
				r, err = near.CompareAndSet(s.ctx, 1000*i+1, 0)
				wantResult(s, r, err, atomic.Result[int64]{Pre: 1000*i + 2})
			}
			s.must(near.Close())
		}
		ids := atomic.NewCachedAtomicLong(s.long(), 3)
		s.must(s.otherLong().ForceSet(s.ctx, 0))
		for i := range int64(7) {
			r, err := ids.Next(s.ctx)
			wantResult(s, r, err, applied(i, i+1))
		}
		s.wantNumber(9)
	})
}
