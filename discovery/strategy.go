package discovery

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/recipes/cache"
)

// Strategy chooses one of the candidates, of which there is at least one; nil is none of them. It may be called
// concurrently, and must not change the slice, which is the same one until the candidates change. In Java:
// ProviderStrategy.
type Strategy[T any] interface {
	Choose(candidates []*Candidate[T]) *Candidate[T]
}

// Candidate is an instance that a [Strategy] may choose.
type Candidate[T any] struct {
	Instance ServiceInstance[T]
	identity identity
	node     *cache.ChildData
	load     *load
}

// InFlight returns the number of picks of the instance, by this provider, that are not done: see
// [ServiceProvider.Pick].
func (c *Candidate[T]) InFlight() int { return int(c.load.inFlight.Load()) }

// load is what a provider has given an instance to do. It lives as long as the node of the instance.
type load struct{ inFlight atomic.Int64 }

// RoundRobin returns a strategy that chooses the candidates in turn. Each process begins with another one. In Java:
// RoundRobinStrategy.
func RoundRobin[T any]() Strategy[T] {
	r := new(roundRobin[T])
	r.next.Store(rand.Uint64())
	return r
}

type roundRobin[T any] struct{ next atomic.Uint64 }

func (r *roundRobin[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	return candidates[r.next.Add(1)%uint64(len(candidates))]
}

// Random returns a strategy that chooses any candidate with the same probability. In Java: RandomStrategy.
func Random[T any]() Strategy[T] { return random[T]{} }

type random[T any] struct{}

func (random[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	return candidates[rand.IntN(len(candidates))]
}

// Sticky returns a strategy that keeps to the instance that another strategy has chosen, until it is no candidate any
// more. In Java: StickyStrategy.
func Sticky[T any](first Strategy[T]) Strategy[T] { return &sticky[T]{first: first} }

type sticky[T any] struct {
	first Strategy[T]

	mu     sync.Mutex
	chosen *Candidate[T]
	among  []*Candidate[T]
}

func (s *sticky[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chosen != nil && isSame(candidates, s.among) {
		return s.chosen
	}
	i := -1
	if s.among = candidates; s.chosen != nil {
		i = slices.IndexFunc(candidates, func(c *Candidate[T]) bool { return c.identity == s.chosen.identity })
	}
	if i >= 0 {
		s.chosen = candidates[i] // its data may have changed
	} else {
		s.chosen = s.first.Choose(candidates)
	}
	return s.chosen
}

// isSame reports whether two slices are the same one.
func isSame[T any](a, b []*Candidate[T]) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// FewestInFlight returns a strategy that takes two candidates at random and chooses the one with fewer picks in flight:
// see [ServiceProvider.Pick]. That spreads the load nearly as well as the fewest of all would, at the same cost for any
// number of candidates. Not in Java.
func FewestInFlight[T any]() Strategy[T] { return fewestInFlight[T]{} }

type fewestInFlight[T any] struct{}

func (fewestInFlight[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	n := len(candidates)
	a := rand.IntN(n)
	if n == 1 {
		return candidates[a]
	}
	b := (a + 1 + rand.IntN(n-1)) % n
	if candidates[b].load.inFlight.Load() < candidates[a].load.inFlight.Load() {
		a = b
	}
	return candidates[a]
}

// Weighted returns a strategy that chooses at random, a candidate with twice the weight twice as often. weight is
// called once for each change of the candidates; one that is not above 0 is never chosen. Not in Java.
func Weighted[T any](weight func(ServiceInstance[T]) float64) Strategy[T] {
	return &weighted[T]{weight: weight}
}

type weighted[T any] struct {
	weight func(ServiceInstance[T]) float64
	sums   atomic.Pointer[sums[T]]
}

// sums has the sum of the weights up to each candidate.
type sums[T any] struct {
	of   []*Candidate[T]
	upTo []float64
}

func (w *weighted[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	s := w.sums.Load()
	if s == nil || !isSame(s.of, candidates) {
		s = w.add(candidates)
		w.sums.Store(s)
	}
	all := s.upTo[len(s.upTo)-1]
	if all == 0 {
		return nil
	}
	at := min(rand.Float64()*all, math.Nextafter(all, 0)) // a tiny product may be rounded up
	i, _ := slices.BinarySearchFunc(s.upTo, at, func(sum, at float64) int {
		if sum <= at {
			return -1
		}
		return 1
	})
	return candidates[i]
}

func (w *weighted[T]) add(candidates []*Candidate[T]) *sums[T] {
	s := &sums[T]{of: candidates, upTo: make([]float64, len(candidates))}
	var sum float64
	for i, c := range candidates {
		if weight := w.weight(c.Instance); weight > 0 {
			sum = min(sum+weight, math.MaxFloat64)
		}
		s.upTo[i] = sum
	}
	return s
}
