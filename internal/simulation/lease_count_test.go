package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/gocurator/curator/recipes/locks"
)

// leaseCount is a number of leases that changes, and that all processes share.
type leaseCount struct {
	mu      sync.Mutex
	counts  []int // all there were, the newest last
	changed chan struct{}
}

func newLeaseCount(n int) *leaseCount {
	return &leaseCount{counts: []int{n}, changed: make(chan struct{})}
}

func (c *leaseCount) set(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = append(c.counts, n)
	close(c.changed)
	c.changed = make(chan struct{})
}

// countReader is the number of leases as one actor reads it.
type countReader struct {
	*leaseCount
	at int // index of the number that was read last
}

var _ locks.LeaseCount = (*countReader)(nil)

func (r *countReader) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = len(r.counts) - 1
	return r.counts[r.at]
}

func (r *countReader) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// most returns the largest number since the last read: the reader, and those who were granted leases after it, have
// relied on no larger one.
func (r *countReader) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Max(r.counts[r.at:])
}

// countFaults change the number of leases.
var countFaults = []fault{
	{name: "number of leases changes", long: true, strike: func(w *world, random *rand.Rand) (string, func()) {
		if w.leaseCount == nil {
			return "", nil
		}
		n := random.IntN(2 * leases)
		w.leaseCount.set(n)
		return fmt.Sprintf("to %d", n), func() { w.leaseCount.set(leases) }
	}},
}
