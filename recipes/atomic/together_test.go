package atomic_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/recipes/atomic"
)

// holdWrite begins an increment and holds its write until release.
func (s *scene) holdWrite(n *atomic.DistributedAtomicLong) (first <-chan atomic.Result[int64], release func()) {
	s.Helper()
	held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.HoldRequest})
	result := make(chan atomic.Result[int64], 1)
	go func() {
		r, err := n.Increment(s.ctx)
		if err != nil {
			s.Error(err)
		}
		result <- r
	}()
	s.must(held.Wait(s.ctx))
	return result, held.Release
}

func TestNumberIncrementsOfGoroutinesAreOneWrite(t *testing.T) {
	t.Parallel()
	const callers = 50
	inMemory(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 0))
		n := s.long()
		first, release := s.holdWrite(n)
		var mu sync.Mutex
		var posts []int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				r, err := n.Increment(s.ctx)
				mu.Lock()
				defer mu.Unlock()
				if posts = append(posts, r.Post); err != nil || !r.Succeeded || r.Pre != r.Post-1 {
					s.Errorf("got %+v, %v", r, err)
				}
			})
		}
		synctest.Wait()
		s.requests()
		release()
		wg.Wait()
		if r := <-first; r.Post != 1 {
			s.Errorf("the first has %+v", r)
		}
		slices.Sort(posts)
		var want []int64
		for i := range int64(callers) {
			want = append(want, i+2)
		}
		if diff := cmp.Diff(want, posts); diff != "" {
			s.Errorf("numbers (-want +got):\n%s", diff)
		}
		if requests := s.requests(); len(requests) > 3 { // a watch, a read and a write
			s.Errorf("requests: %v", requests)
		}
		s.wantNumber(callers + 1)
	})
}

// What one caller wants does not touch the others.
func TestNumberChangesTogetherHaveTheirOwnResults(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 0))
		n := s.long()
		first, release := s.holdWrite(n)
		var wg sync.WaitGroup
		for _, change := range []func(){
			func() {
				r, err := n.Add(s.ctx, 1<<63-2)
				wantResult(s, r, err, applied(1, 1<<63-1))
			},
			func() {
				r, err := n.Increment(s.ctx)
				s.wantErr(err, atomic.ErrOverflow)
				if r.Pre != 1<<63-1 {
					s.Errorf("got %+v", r)
				}
			},
			func() {
				r, err := n.CompareAndSet(s.ctx, 7, 8)
				wantResult(s, r, err, atomic.Result[int64]{Pre: 1<<63 - 1})
			},
			func() {
				r, err := n.CompareAndSet(s.ctx, 1<<63-1, 10)
				wantResult(s, r, err, applied(1<<63-1, 10))
			},
			func() {
				r, err := n.Decrement(s.ctx)
				wantResult(s, r, err, applied(10, 9))
			},
		} {
			wg.Go(change)
			synctest.Wait() // in this order
		}
		release()
		wg.Wait()
		<-first
		s.wantNumber(9)
	})
}

func TestNumberContextEndsBeforeChangeIsSent(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 0))
		n := s.long()
		first, release := s.holdWrite(n)
		ctx, cancel := context.WithCancel(s.ctx)
		left := make(chan error, 1)
		go func() {
			_, err := n.Add(ctx, 1000)
			left <- err
		}()
		synctest.Wait()
		cancel()
		err := <-left
		s.wantErr(err, context.Canceled)
		if isUncertain(err) {
			s.Errorf("got %v", err)
		}
		release()
		<-first
		r, err := n.Increment(s.ctx)
		wantResult(s, r, err, applied(1, 2))
	})
}

// The one whose goroutine began the write leaves; the others get their results.
func TestNumberContextEndsWhileChangeIsInFlight(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 0))
		n := s.long()
		first, release := s.holdWrite(n)
		ctx, cancel := context.WithCancel(s.ctx)
		left, stayed := make(chan error, 1), make(chan atomic.Result[int64], 1)
		go func() {
			r, err := n.Add(ctx, 1000)
			if r.Succeeded || r.Pre != 1 || r.Post != 1001 {
				s.Errorf("got %+v", r)
			}
			left <- err
		}()
		synctest.Wait()
		go func() {
			r, err := n.Increment(s.ctx)
			if err != nil {
				s.Error(err)
			}
			stayed <- r
		}()
		synctest.Wait()
		held := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"setData"}, Count: 1,
			Action: curatortest.HoldRequest,
		})
		release()
		<-first
		s.must(held.Wait(s.ctx))
		cancel()
		err := <-left
		s.wantErr(err, context.Canceled)
		s.wantErr(err, atomic.ErrUncertain)
		held.Release()
		if r := <-stayed; r.Pre != 1001 || r.Post != 1002 {
			s.Errorf("got %+v", r)
		}
		s.wantNumber(1002)
	})
}

// The write goes on without its callers: the next change reads what it has left.
func TestNumberAllCallersLeaveWhileChangeIsInFlight(t *testing.T) {
	t.Parallel()
	inMemory(t, func(s *scene) {
		s.must(s.otherLong().ForceSet(s.ctx, 0))
		n := s.long()
		held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.HoldRequest})
		ctx, cancel := context.WithCancel(s.ctx)
		left := make(chan error, 1)
		go func() {
			_, err := n.Add(ctx, 1000)
			left <- err
		}()
		s.must(held.Wait(s.ctx))
		cancel()
		s.wantErr(<-left, atomic.ErrUncertain)
		held.Release()
		r, err := n.Increment(s.ctx)
		wantResult(s, r, err, applied(1000, 1001))
	})
}
