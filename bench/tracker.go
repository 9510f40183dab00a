package main

import (
	"sync"
	"time"
)

// tracker counts operations of any goroutine, and their latencies.
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
