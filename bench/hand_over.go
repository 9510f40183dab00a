package main

import (
	"context"
	"sync/atomic"
	"time"
)

// handOver measures from the call of one holder's release to the return of the next one's acquire.
type handOver struct{ released atomic.Int64 }

// epoch is the origin of the times of handOver.
var epoch = time.Now()

// operation acquires the lock and releases it.
func (h *handOver) operation(ctx context.Context, l lock) operation {
	return func() (time.Duration, error) { return h.through(ctx, l) }
}

func (h *handOver) through(ctx context.Context, l lock) (time.Duration, error) {
	if err := l.acquire(ctx); err != nil {
		return -1, err
	}
	latency := time.Duration(-1)
	if released := h.released.Load(); released != 0 {
		latency = time.Since(epoch) - time.Duration(released)
	}
	return latency, h.release(ctx, l)
}

func (h *handOver) release(ctx context.Context, l lock) error {
	h.released.Store(int64(time.Since(epoch)))
	return l.release(ctx)
}
