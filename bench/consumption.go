package main

import (
	"context"
	"sync/atomic"
	"time"
)

// consumption counts the consumed items.
type consumption struct {
	items      atomic.Int64
	last       int64 // that is consumed, if there is one
	first, all chan struct{}
}

func newConsumption(last int) *consumption {
	return &consumption{last: int64(last), first: make(chan struct{}), all: make(chan struct{})}
}

func (c *consumption) count() {
	n := c.items.Add(1)
	if n == 1 {
		close(c.first)
	}
	if n == c.last {
		close(c.all)
	}
}

// wait waits until the last item is consumed or the time is up, and for at least one item.
func (c *consumption) wait(ctx context.Context, l load) error {
	select {
	case <-c.all:
	case <-time.After(l.duration()):
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
