package testenv

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// Grants records the holders of a thing that only one may hold, and the times. All methods are safe for concurrent
// use.
type Grants struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu  sync.Mutex
	all []grant
}

type grant struct {
	who      string
	from, to time.Time
}

// NewGrants returns grants without any.
func NewGrants() *Grants {
	s := &Grants{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Context returns the context that ends with End.
func (s *Grants) Context() context.Context { return s.ctx }

// Go runs f, for which End waits. After End it does nothing.
func (s *Grants) Go(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.wg.Go(f)
	}
}

// Add records a holder from now on, until lost ends. After End it does nothing.
func (s *Grants) Add(lost context.Context, who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	i := len(s.all)
	s.all = append(s.all, grant{who: who, from: time.Now()})
	s.wg.Go(func() {
		select {
		case <-lost.Done():
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all[i].to = time.Now()
	})
}

// End ends the context and all grants, and waits for the functions of Go.
func (s *Grants) End() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
}

// Check fails the test if two held it at once, for longer than the process stood still. Call it after End.
func (s *Grants) Check(tb testing.TB, missed func(from, to time.Time) time.Duration) {
	tb.Helper()
	slices.SortFunc(s.all, func(a, b grant) int { return a.from.Compare(b.from) })
	for i, one := range s.all {
		tb.Logf("%s from %v for %v", one.who, one.from.Sub(s.all[0].from), one.to.Sub(one.from))
		for _, later := range s.all[i+1:] {
			if both := one.to.Sub(later.from); both > missed(one.from, one.to) {
				tb.Errorf("%s and %s had it at once for %v", one.who, later.who, both)
			}
		}
	}
}
