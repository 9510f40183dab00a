package main

import (
	"sync"
	"time"
)

// tracker counts what passes, by any goroutine, and how long it took.
type tracker struct {
	mu        sync.Mutex
	latencies histogram
}

func (t *tracker) add(latency time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latencies.add(latency)
}

func (t *tracker) report(r *result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latencies.report(r)
	r.Ops = t.latencies.total
}
