package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gocurator/curator/recipes/barrier"
)

// barrierWork is the double barrier. An operation is a round of all members.
var barrierWork = section{
	workloads: map[string]workload{doubleBarrier: runDoubleBarrier},
	rows: []row{
		{
			name: "double barrier of 2", server: realServer, show: latency,
			entries: against(work(doubleBarrier).threads(2), curator, javas),
			budget:  []bound{atLeast(2, rate).of(javas)},
		},
		{
			name: "double barrier of 4", server: realServer, show: latency,
			entries: against(work(doubleBarrier).threads(4), curator, javas),
			budget:  []bound{atLeast(2, rate).of(javas)},
		},
	},
}

// runDoubleBarrier runs members with a client each, which enter and leave together, again and again. The latency is
// that of the first member. They meet before they enter and before they leave, as Java's must.
func runDoubleBarrier(ctx context.Context, t *target, l load) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	path, err := t.node(ctx, "double-barrier", nil)
	if err != nil {
		return r, err
	}
	members := make([]*barrier.DistributedDoubleBarrier, l.Threads)
	for i := range members {
		c, err := t.client(ctx, i)
		if err != nil {
			return r, err
		}
		own, ok := c.(curatorClient)
		if !ok {
			return r, fmt.Errorf("%T has no barrier", c)
		}
		members[i] = barrier.NewDistributedDoubleBarrier(own.Client, path, len(members))
	}
	r = loop(l.duration(), []operation{func() (time.Duration, error) { return oneRound(ctx, members) }})
	return r, c.removeTree(ctx, path)
}

// oneRound lets the members enter and, when all have entered, leave.
func oneRound(ctx context.Context, members []*barrier.DistributedDoubleBarrier) (time.Duration, error) {
	entering, err := together(members, func(m *barrier.DistributedDoubleBarrier) error { return m.Enter(ctx) })
	if err != nil {
		return -1, err
	}
	leaving, err := together(members, func(m *barrier.DistributedDoubleBarrier) error { return m.Leave(ctx) })
	return entering + leaving, err
}

// together calls a function for all members at once, and returns how long the first of them takes.
func together(
	members []*barrier.DistributedDoubleBarrier, do func(m *barrier.DistributedDoubleBarrier) error,
) (latency time.Duration, err error) {
	var wg sync.WaitGroup
	errs := make([]error, len(members))
	for i, m := range members {
		wg.Go(func() {
			start := time.Now()
			errs[i] = do(m)
			if i == 0 {
				latency = time.Since(start)
			}
		})
	}
	wg.Wait()
	return latency, errors.Join(errs...)
}
