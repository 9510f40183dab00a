package main

import (
	"math"
	"slices"
	"time"
)

// metric is a figure of a result.
type metric struct {
	name string
	of   func(r result) float64 // NaN where there is none
}

var (
	rate   = metric{"operations/s", func(r result) float64 { return float64(r.Ops) / r.Elapsed.Seconds() }}
	cpu    = metric{"CPU µs/op", func(r result) float64 { return per(float64(r.CPU)/float64(time.Microsecond), r.Ops) }}
	allocs = metric{"allocations/op", func(r result) float64 { return per(float64(r.Allocs), r.Ops) }}
	p50    = metric{"p50 µs", func(r result) float64 { return positive(r.P50) }}
	p99    = metric{"p99 µs", func(r result) float64 { return positive(r.P99) }}

	allocBytes = metric{"bytes/op", func(r result) float64 { return per(float64(r.Bytes), r.Ops) }}

	// requests is the number of requests that a server has received for each operation.
	requests = metric{"requests/op", func(r result) float64 { return per(positive(float64(r.Requests)), r.Ops) }}

	// memory is the growth of the resident set for each waiter.
	memory = metric{"KB/waiter", func(r result) float64 {
		if r.Waiting.RSSKB <= 0 || r.Before.RSSKB <= 0 {
			return math.NaN()
		}
		return per(float64(r.Waiting.RSSKB-r.Before.RSSKB), r.Ops)
	}}
	// heap is the growth of the heap for each operation, after a garbage collection.
	heap = metric{"heap bytes/node", func(r result) float64 {
		return per(float64(r.Waiting.HeapBytes-r.Before.HeapBytes), r.Ops)
	}}
	// threads is the number of threads, or of goroutines, for each waiter.
	threads = metric{"threads/waiter", func(r result) float64 {
		return per(float64(r.Waiting.Threads-r.Before.Threads), r.Ops)
	}}
)

// The columns of a table.
var (
	throughput = []metric{rate, cpu, allocs}
	latency    = []metric{rate, p50, p99, cpu, allocs}
	waits      = []metric{p50, p99}
)

// positive returns v, or NaN if nothing was measured.
func positive(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

func per(total float64, ops int64) float64 {
	if ops == 0 {
		return math.NaN()
	}
	return total / float64(ops)
}

// spread has the results of several rounds.
type spread struct{ low, mid, high float64 }

// spreadOf returns the lowest, the median and the highest value. It leaves out values that are no number.
func spreadOf(values []float64) spread {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(values)
	n := len(values)
	return spread{values[0], (values[(n-1)/2] + values[n/2]) / 2, values[n-1]}
}
