package discovery

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/internal/usercode"
)

// Strategy chooses one of the candidates, of which there is at least one; nil is none of them. It may be called
// concurrently, and must not change the slice, which is the same one until the candidates change. It runs on the
// goroutine that wants an instance: if it panics, or returns a Candidate that it has made, that has an error. In Java:
// ProviderStrategy.
type Strategy[T any] interface {
	Choose(candidates []*Candidate[T]) *Candidate[T]
}

// skipping is a strategy that is asked again if it has chosen a candidate that is down, so that the list need not
// change whenever one is.
type skipping interface{ skipsDown() bool }

// preparing is a strategy with code of the program that runs once for each candidate, before it is one.
type preparing[T any] interface {
	prepare(c *Candidate[T]) error
}

// Candidate is an instance that a [Strategy] may choose.
type Candidate[T any] struct {
	Instance ServiceInstance[T]
	identity identity
	load     *load

	weighedBy any // the strategy whose weight this is
	weight    float64
}

// isDown reports whether callers have noted so many errors of the instance that it is not chosen.
func (c *Candidate[T]) isDown() bool { return c != nil && c.load != nil && c.load.isDown() }

// InFlight returns the number of picks of the instance, by this provider, that are not done: see
// [ServiceProvider.Pick]. It is 0 for a Candidate that no provider has made.
func (c *Candidate[T]) InFlight() int {
	if c.load == nil {
		return 0
	}
	return int(c.load.inFlight.Load())
}

// RoundRobin returns a strategy that chooses the candidates in turn. Each process begins with another one. In Java:
// RoundRobinStrategy.
func RoundRobin[T any]() Strategy[T] {
	r := new(roundRobin[T])
	r.next.Store(rand.Uint64())
	return r
}

type roundRobin[T any] struct{ next atomic.Uint64 }

func (*roundRobin[T]) skipsDown() bool { return true }

func (r *roundRobin[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	return candidates[r.next.Add(1)%uint64(len(candidates))]
}

// Random returns a strategy that chooses any candidate with the same probability. In Java: RandomStrategy.
func Random[T any]() Strategy[T] { return random[T]{} }

type random[T any] struct{}

func (random[T]) skipsDown() bool { return true }

func (random[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	return candidates[rand.IntN(len(candidates))]
}

// Sticky returns a strategy that keeps to the instance that another strategy has chosen, until it is no candidate any
// more. In Java: StickyStrategy.
func Sticky[T any](first Strategy[T]) Strategy[T] { return &sticky[T]{first: first} }

type sticky[T any] struct {
	first Strategy[T]

	mu     sync.Mutex // not held while first chooses
	chosen *Candidate[T]
	among  []*Candidate[T]
}

func (s *sticky[T]) skipsDown() bool {
	first, ok := s.first.(skipping)
	return ok && first.skipsDown()
}

func (s *sticky[T]) prepare(c *Candidate[T]) error {
	if first, ok := s.first.(preparing[T]); ok {
		return first.prepare(c)
	}
	return nil
}

func (s *sticky[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	s.mu.Lock()
	before, among := s.chosen, s.among
	s.mu.Unlock()
	if before != nil && !before.isDown() {
		if isSame(candidates, among) {
			return before
		}
		i := slices.IndexFunc(candidates, func(c *Candidate[T]) bool { return c.identity == before.identity })
		if i >= 0 {
			return s.stick(before, candidates[i], candidates) // its data may have changed
		}
	}
	return s.stick(before, s.first.Choose(candidates), candidates)
}

// stick keeps to a candidate, or to that which another call has chosen meanwhile.
func (s *sticky[T]) stick(before, now *Candidate[T], among []*Candidate[T]) *Candidate[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chosen != before && s.chosen != nil && isSame(s.among, among) {
		return s.chosen
	}
	s.chosen, s.among = now, among
	return now
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

func (fewestInFlight[T]) skipsDown() bool { return true }

func (fewestInFlight[T]) Choose(candidates []*Candidate[T]) *Candidate[T] {
	n := len(candidates)
	a := rand.IntN(n)
	if n == 1 {
		return candidates[a]
	}
	b := (a + 1 + rand.IntN(n-1)) % n
	if candidates[b].InFlight() < candidates[a].InFlight() {
		a = b
	}
	return candidates[a]
}

// Weighted returns a strategy that chooses at random, a candidate with twice the weight twice as often. weight is
// called once for each change of an instance, as a filter is: see [WithFilter]. An instance whose weight is not above
// 0, or panics, is never chosen. A strategy of the program that calls this one has it call weight at its first choice
// among other candidates. Not in Java.
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

func (*weighted[T]) skipsDown() bool { return true }

func (w *weighted[T]) prepare(c *Candidate[T]) (err error) {
	c.weighedBy, c.weight = w, 0
	defer usercode.Catch("the weight", &err)
	c.weight = w.weight(c.Instance)
	return nil
}

// weightOf returns the weight of a candidate. One that was not prepared is of the program.
func (w *weighted[T]) weightOf(c *Candidate[T]) float64 {
	if c.weighedBy != w {
		c = &Candidate[T]{Instance: c.Instance}
		_ = w.prepare(c) // without a weight
	}
	return c.weight
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
	var largest, sum float64
	for i, c := range candidates {
		if weight := w.weightOf(c); weight > 0 {
			s.upTo[i] = min(weight, math.MaxFloat64)
			largest = max(largest, s.upTo[i])
		}
	}
	for i, weight := range s.upTo {
		if weight > 0 {
			sum += weight / largest // the sum of the weights may be too large for a float64
		}
		s.upTo[i] = sum
	}
	return s
}
