package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// workload does the work of a case.
type workload func(ctx context.Context, t *target, l load) (result, error)

// run runs a load on t.
func (t *target) run(ctx context.Context, l load) (result, error) {
	for _, s := range sections {
		if w, ok := s.workloads[l.Case]; ok {
			return w(ctx, t, l)
		}
	}
	return result{}, fmt.Errorf("no case %q", l.Case)
}

// operation is one operation. It returns the latency to record; a negative one is not recorded.
type operation func() (time.Duration, error)

// timed returns an operation that records the whole latency of fn.
func timed(fn func() error) operation {
	return func() (time.Duration, error) {
		start := time.Now()
		err := fn()
		return time.Since(start), err
	}
}

// loop repeats each operation on a goroutine of its own until the time is up, at least once. An operation that fails is
// not repeated.
func loop(d time.Duration, operations []operation) result {
	var r result
	var stop atomic.Bool
	var wg sync.WaitGroup
	latencies := make([]histogram, len(operations))
	tallies := make([]tally, len(operations))
	watch := startWatch()
	for i, operation := range operations {
		wg.Go(func() {
			var t tally
			for over := false; !over; over = stop.Load() {
				latency, err := operation()
				if !t.count(err) {
					break
				}
				if latency >= 0 {
					latencies[i].add(latency)
				}
			}
			tallies[i] = t
		})
	}
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	wg.Wait()
	timer.Stop()
	watch.stop(&r)
	var all tally
	var whole histogram
	for i := range tallies {
		all.merge(tallies[i])
		whole.merge(&latencies[i])
	}
	all.report(&r)
	whole.report(&r)
	return r
}
