package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// The budget of operations.
var (
	// On a real server the server is the limit, so the budget is about the CPU time of the client.
	realBudget = []bound{
		atLeast(0.95, rate).of(javas), atLeast(0.95, rate).of(plain),
		atMost(0.75, cpu).of(javas), atMost(0.75, cpu).of(plain),
	}
	nullBudget = []bound{
		atLeast(15, rate).of(on(oneCore, javas)), atLeast(10, rate).of(on(oneCore, plain)),
		atLeast(1e6, rate), atMost(1, cpu),
		atLeast(1, rate).by(on(allCores, curator)).of(on(oneCore, curator)),
		atMost(1.4, cpu).by(on(allCores, curator)).of(on(oneCore, curator)),
	}
	// The one allocation of a read is its result. After a garbage collection an operation may find no memory to reuse.
	oneAllocation = []bound{atMost(1.05, allocs), atMost(1.05, allocs).by(on(allCores, curator))}
)

// operationWork measures single operations.
var operationWork = section{
	workloads: map[string]workload{
		createSync:       runCreateSync,
		getDataSync:      runGetDataSync,
		createBackground: runCreateBackground,
		getDataBg:        runGetDataBackground,
	},
	rows: []row{
		{
			name: "background create, window 1000", server: realServer, show: throughput, budget: realBudget,
			entries: against(work(createBackground), curator, plain, javas),
		},
		{
			name: "background getData, window 1000", server: realServer, show: throughput, budget: realBudget,
			entries: against(work(getDataBg), curator, plain, javas),
		},
		{
			name: "background create, window 1000", server: nullServer, show: throughput,
			entries: onOneAndAll(work(createBackground), work(createBackground)),
			budget:  slices.Concat(nullBudget, []bound{atMost(4.1, allocs)}),
		},
		{
			name: "background getData, window 1000", server: nullServer, show: throughput,
			entries: onOneAndAll(work(getDataBg), work(getDataBg)),
			budget:  slices.Concat(nullBudget, oneAllocation),
		},
		{
			name: "getData, 16 goroutines", server: realServer, show: latency,
			entries: against(work(getDataSync).threads(16), curator, plain, javas),
			budget:  []bound{atMost(0.8, cpu).of(plain), atMost(0.65, cpu).of(javas)},
		},
		{
			name: "getData, 128 goroutines", server: nullServer, show: latency,
			entries: onOneAndAll(work(getDataSync).threads(128), work(getDataBg).window(128)),
			budget: slices.Concat([]bound{
				atLeast(5, rate).of(on(oneCore, javas)), atLeast(2.5, rate).of(on(oneCore, plain)),
				atMost(160, allocBytes), atMost(160, allocBytes).by(on(allCores, curator)),
			}, oneAllocation),
		},
		{
			name: "create, one goroutine", server: realServer, show: latency,
			entries: against(work(createSync), curator, plain, javas),
			budget:  []bound{atMost(1, p50).of(plain), atMost(6, allocs)},
		},
		{
			name: "getData, one goroutine", server: realServer, show: latency,
			entries: against(work(getDataSync), curator, plain, javas),
			budget:  []bound{atMost(1, p50).of(plain), atMost(6, allocs)},
		},
	},
}

// onOneAndAll returns entries for the null server: each library on one core and on all, and the limit of a client,
// which needs one core.
func onOneAndAll(l, atLimit load) []entry {
	entries := []entry{
		{name: on(oneCore, curator), library: curator, load: l, cores: oneCore},
		{name: on(allCores, curator), library: curator, load: l, cores: allCores},
		{name: limit, library: limit, load: atLimit, cores: oneCore},
	}
	for _, library := range []string{plain, javas} {
		for _, c := range []cores{oneCore, allCores} {
			entries = append(entries, entry{name: on(c, library), library: library, load: l, cores: c})
		}
	}
	return entries
}

// on returns the name of a library that has these cores.
func on(c cores, library string) string { return library + ", " + string(c) }

// runCreateSync creates nodes in each thread, all with one client.
func runCreateSync(ctx context.Context, t *target, l load) (result, error) {
	return t.withScratch(ctx, l, l.Threads, func(c client, s *scratch) result {
		data := make([]byte, l.Payload)
		operations := make([]operation, l.Threads)
		for i := range operations {
			paths := s.series[i]
			operations[i] = timed(func() error { return c.create(ctx, paths.next(), data) })
		}
		return loop(l.duration(), operations)
	})
}

// runGetDataSync reads one node in each thread, all with one client.
func runGetDataSync(ctx context.Context, t *target, l load) (result, error) {
	return t.withData(ctx, l, func(c client, path string) result {
		operations := make([]operation, l.Threads)
		for i := range operations {
			operations[i] = timed(func() error { return c.get(ctx, path) })
		}
		return loop(l.duration(), operations)
	})
}

// runCreateBackground keeps a window of creates in flight.
func runCreateBackground(ctx context.Context, t *target, l load) (result, error) {
	return t.withScratch(ctx, l, l.Window, func(c client, s *scratch) result {
		data := make([]byte, l.Payload)
		return fly(l.duration(), func(stop *atomic.Bool) tally { return c.createMany(ctx, l.Window, s, data, stop) })
	})
}

// runGetDataBackground keeps a window of reads in flight.
func runGetDataBackground(ctx context.Context, t *target, l load) (result, error) {
	return t.withData(ctx, l, func(c client, path string) result {
		return fly(l.duration(), func(stop *atomic.Bool) tally { return c.getMany(ctx, l.Window, path, stop) })
	})
}

// fly sets stop when the time is up; the measurement ends when the last operation has.
func fly(d time.Duration, many func(stop *atomic.Bool) tally) (r result) {
	var stop atomic.Bool
	watch := startWatch()
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	all := many(&stop)
	watch.stop(&r)
	timer.Stop()
	all.report(&r)
	return r
}

// withScratch runs fn with a scratch that is removed afterwards.
func (t *target) withScratch(
	ctx context.Context, l load, series int, fn func(c client, s *scratch) result,
) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	parent, err := t.node(ctx, "run", nil)
	if err != nil {
		return r, err
	}
	s := newScratch(c, parent, series)
	r = fn(c, s)
	if l.Keep {
		return r, nil
	}
	return r, s.remove(ctx)
}

// withData runs fn with the path of a node with data.
func (t *target) withData(ctx context.Context, l load, fn func(c client, path string) result) (r result, err error) {
	c, err := t.client(ctx, 0)
	if err != nil {
		return r, err
	}
	path, err := t.node(ctx, "data", make([]byte, l.Payload))
	if err != nil {
		return r, err
	}
	r = fn(c, path)
	return r, c.deleteAll(ctx, []string{path})
}
