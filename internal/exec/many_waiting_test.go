//go:build unix

package exec

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Callers that wait for room give up in CPU time that grows with their number alone: with anything quadratic 40,000 of
// them take seconds, in which no other operation is accepted.
func TestManyThatWaitToBeAcceptedGiveUp(t *testing.T) {
	giveUp := func(n int) time.Duration {
		p := &pending{most: 1, idle: make(chan struct{})}
		if _, err := p.enter(t.Context(), false, false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if _, err := p.enter(ctx, false, false); err == nil {
					t.Error("accepted beyond the bound")
				}
			})
		}
		for waiting := 0; waiting < n; <-time.After(time.Millisecond) {
			p.mu.Lock()
			waiting = p.queued()
			p.mu.Unlock()
		}
		before := cpuTime(t)
		cancel()
		wg.Wait()
		return cpuTime(t) - before
	}
	few, many := giveUp(2000), giveUp(40_000)
	t.Logf("2,000 took %v, 40,000 %v", few, many)
	if many > 100*max(few, 2*time.Millisecond) {
		t.Errorf("40,000 took %v, 2,000 took %v", many, few)
	}
}

// cpuTime returns how long this process has worked. What a busy machine makes it wait is not counted.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
