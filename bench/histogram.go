package main

import (
	"math"
	"math/bits"
	"time"
)

const (
	histogramBits = 7 // classes are not wider than 1/128 of their values
	histogramHalf = 1 << histogramBits
	histogramMax  = 1<<36 - 1 // ns, about a minute; longer latencies count as this one
	histogramSize = (36 - histogramBits + 1) * histogramHalf
)

// histogram counts latencies; adding one allocates nothing. The Java side has the same.
type histogram struct {
	counts [histogramSize]uint32
	total  int64
}

func (h *histogram) add(d time.Duration) {
	v := uint64(min(max(d, 0), histogramMax))
	shift := max(0, bits.Len64(v)-1-histogramBits)
	h.counts[shift*histogramHalf+int(v>>shift)]++
	h.total++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// quantile returns the middle of the class, in microseconds, in which this part of the values is reached, or 0 without
// values.
func (h *histogram) quantile(part float64) float64 {
	rank := max(1, int64(math.Ceil(part*float64(h.total))))
	var seen int64
	for i, n := range h.counts {
		if seen += int64(n); seen >= rank {
			shift := max(0, i/histogramHalf-1)
			low := (i - shift*histogramHalf) << shift
			return (float64(low) + float64(int(1)<<shift-1)/2) / 1e3
		}
	}
	return 0
}

// report stores the latencies in r.
func (h *histogram) report(r *result) {
	r.P50, r.P99, r.Max = h.quantile(0.50), h.quantile(0.99), h.quantile(1)
}
