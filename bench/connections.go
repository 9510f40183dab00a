package main

import (
	"context"
	"errors"
	"time"
)

// connectionWork measures connections that begin and end.
var connectionWork = section{
	workloads: map[string]workload{connecting: runConnect, reconnecting: runReconnect},
	rows: []row{
		{
			// The latency is to the first answer. The rate counts whole clients, with their close.
			name: "connect to first answer", server: realServer, show: []metric{rate, p50, p99},
			entries: against(work(connecting), curator, plain, javas),
			budget:  []bound{atMost(0.2, p50).of(javas), atLeast(5, rate).of(javas)},
		},
		{
			name: "session again after a cut", server: cutServer, show: waits, stretch: 4,
			entries: against(work(reconnecting), curator, plain, javas),
			budget:  []bound{atMost(50_000, p50)},
		},
		{
			name: "the same, three servers to choose from", server: cutServer, show: waits, stretch: 4, servers: 3,
			entries: against(work(reconnecting), curator, plain, javas),
			budget:  []bound{atMost(50_000, p50)},
		},
	},
}

// runConnect opens clients one after the other. The latency is from the opening to the first answer; elapsed and CPU
// time include the closing.
func runConnect(ctx context.Context, t *target, l load) (result, error) {
	return loop(l.duration(), []operation{func() (time.Duration, error) {
		start := time.Now()
		c, err := connectTo(ctx, t.library.open, t.connect)
		if err != nil {
			return -1, err
		}
		latency := time.Since(start)
		return latency, c.close()
	}}), nil
}

// retryPause is how long an operation that found no connection waits.
const retryPause = time.Millisecond

// runReconnect sends requests without a pause while a proxy cuts the connection. An operation is an interruption. Its
// latency is from the last answer before it to the first one after it.
func runReconnect(ctx context.Context, t *target, l load) (r result, err error) {
	c, err := connectTo(ctx, t.library.impatient, t.connect)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var all tally
	var latencies histogram
	watch := startWatch()
	last := time.Now()
	for end, cut := last.Add(l.duration()), false; cut || last.Before(end); {
		if c.get(ctx, "/") != nil {
			cut = true
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
				return r, ctx.Err()
			}
			continue
		}
		now := time.Now()
		if cut {
			all.count(nil)
			latencies.add(now.Sub(last))
		}
		cut, last = false, now
		r.Answers++
	}
	watch.stop(&r)
	all.report(&r)
	latencies.report(&r)
	return r, nil
}
