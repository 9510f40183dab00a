package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

// counterWork measures the increments of a counter.
var counterWork = section{
	workloads: map[string]workload{
		counting:          runCounting,
		countingOneClient: runCountingOneClient,
	},
	rows: []row{
		{
			name: "counter, increment", server: realServer, show: latency,
			entries: append(against(work(counting), curator, javas),
				entry{name: "with receipts", library: curator, load: work(counting).safe()}),
			budget: []bound{atLeast(1.6, rate).of(javas)},
		},
		{
			name: "counter, 8 clients increment", server: realServer, show: latency,
			entries: against(work(counting).threads(8), curator, javas),
			budget:  []bound{atLeast(1.5, rate).of(javas)},
		},
		{
			name: "counter, 8 threads of one client", server: realServer, show: latency,
			entries: against(work(countingOneClient).threads(8), curator, javas),
			budget:  []bound{atLeast(4, rate).of(javas)},
		},
	},
}

// countingPolicy is that of Java's counters: nobody gives up.
var countingPolicy = retry.NTimes(1_000_000, time.Millisecond)

// runCounting increments one number in threads with a client each. A safe one has receipts.
func runCounting(ctx context.Context, t *target, l load) (result, error) {
	return t.count(ctx, l, func(n int) int { return n })
}

// runCountingOneClient increments one number in threads that share a counter.
func runCountingOneClient(ctx context.Context, t *target, l load) (result, error) {
	return t.count(ctx, l, func(int) int { return 0 })
}

// count increments one number in each thread, with the counter of a number.
func (t *target) count(ctx context.Context, l load, counterFor func(thread int) int) (r result, err error) {
	first, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	path, err := t.node(ctx, "counter", nil)
	if err != nil {
		return r, err
	}
	counters := make(map[int]*atomic.DistributedAtomicLong)
	operations := make([]operation, l.Threads)
	for i := range operations {
		n := counterFor(i)
		if counters[n] == nil {
			if counters[n], err = t.counter(ctx, n, path, l); err != nil {
				return r, err
			}
		}
		counter := counters[n]
		operations[i] = timed(func() error {
			result, err := counter.Increment(ctx)
			if err == nil && !result.Succeeded {
				return errors.New("the others were faster")
			}
			return err
		})
	}
	r = loop(l.duration(), operations)
	for _, counter := range counters {
		err = errors.Join(err, counter.Close())
	}
	return r, errors.Join(err, first.removeTree(ctx, path))
}

// counter returns the counter of the client with a number.
func (t *target) counter(ctx context.Context, number int, path string, l load) (*atomic.DistributedAtomicLong, error) {
	c, err := t.client(ctx, number)
	if err != nil {
		return nil, err
	}
	own, ok := c.(curatorClient)
	if !ok {
		return nil, fmt.Errorf("%T has no counter", c)
	}
	var opts []atomic.Option
	if l.Safe {
		opts = append(opts, atomic.WithReceipts(path+"-receipts"))
	}
	return atomic.NewDistributedAtomicLong(own.Client, path, countingPolicy, opts...), nil
}
