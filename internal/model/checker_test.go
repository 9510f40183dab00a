package model

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// machine is a protocol with its environment. S is a state, a plain value.
type machine[S any] interface {
	// first returns the initial state.
	first() S
	// next calls emit for every step that is possible in a state.
	next(s *S, emit func(step, S))
	// encode appends what distinguishes a state from others. States that differ in names alone have one encoding.
	encode(s *S, to []byte) []byte
	// violation names the promise that a state breaks, "" for none.
	violation(s *S) string
	// unfinished names the missing result of a state without further steps, "" for none.
	unfinished(s *S) string
	// describe describes a step.
	describe(from *S, st step, to *S) string
}

// step is one thing that happens. A fault need not happen; anything else does, sooner or later.
type step struct {
	fault          bool
	what, who, arg int8
}

// result is the result of an exploration.
type result struct {
	states, steps, depth int
	violation            string   // "" if every promise holds
	trace                []string // the shortest way there
}

// String returns the counterexample.
func (r *result) String() string {
	if r.violation == "" {
		return fmt.Sprintf("%d states, %d steps, depth %d", r.states, r.steps, r.depth)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, after %d steps:\n", r.violation, len(r.trace))
	for i, line := range r.trace {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, line)
	}
	return b.String()
}

// fingerprint stands for a state. That any two of 10⁸ states share one has a probability of about 10⁻²³.
type fingerprint [2]uint64

// explorer is one exploration. States are numbered in the order in which they are found.
type explorer[S any] struct {
	machine machine[S]
	seeds   [2]maphash.Seed
	buffer  []byte
	known   map[fingerprint]int32
	prints  []fingerprint
	parents []int32
	begins  []int32 // where the successors of a state begin
	follows []int32 // its successors by steps that are not faults
	steps   int
}

// explore visits every reachable state, breadth first. It stops at a state that breaks a promise, or that has no
// further step and an unfinished member. Then it searches for a cycle without a fault. Without any of these, every
// order of steps finishes from every state when no more faults come.
func explore[S any](m machine[S]) *result {
	x := &explorer[S]{
		machine: m,
		seeds:   [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		known:   make(map[fingerprint]int32),
	}
	first := m.first()
	x.add(&first, -1)
	depth, level := 0, []S{first}
	for from := int32(0); len(level) > 0; depth++ {
		var next []S
		for i := range level {
			at := from + int32(i)
			if bad := m.violation(&level[i]); bad != "" {
				return x.found(depth, bad, at)
			}
			if x.expand(at, &level[i], &next) == 0 {
				if bad := m.unfinished(&level[i]); bad != "" {
					return x.found(depth, bad, at)
				}
			}
		}
		from += int32(len(level))
		level = next
	}
	if at := x.cycle(); at >= 0 {
		return x.found(depth, "it goes round without an end", at)
	}
	return &result{states: len(x.prints), steps: x.steps, depth: depth - 1}
}

// add numbers a state. A new state gets the last number.
func (x *explorer[S]) add(s *S, parent int32) (at int32, isNew bool) {
	p := x.print(s)
	if at, ok := x.known[p]; ok {
		return at, false
	}
	at = int32(len(x.prints))
	x.known[p] = at
	x.prints, x.parents = append(x.prints, p), append(x.parents, parent)
	return at, true
}

func (x *explorer[S]) print(s *S) fingerprint {
	x.buffer = x.machine.encode(s, x.buffer[:0])
	return fingerprint{maphash.Bytes(x.seeds[0], x.buffer), maphash.Bytes(x.seeds[1], x.buffer)}
}

// expand finds the successors of a state and returns the number of those that need no fault.
func (x *explorer[S]) expand(at int32, s *S, next *[]S) int {
	x.begins = append(x.begins, int32(len(x.follows)))
	x.machine.next(s, func(st step, to S) {
		x.steps++
		number, isNew := x.add(&to, at)
		if isNew {
			*next = append(*next, to)
		}
		if !st.fault {
			x.follows = append(x.follows, number)
		}
	})
	return len(x.follows) - int(x.begins[at])
}

// cycle returns a state that is reached again without a fault, -1 if there is none.
func (x *explorer[S]) cycle() int32 {
	const fresh, open, closed = 0, 1, 2
	x.begins = append(x.begins, int32(len(x.follows)))
	state := make([]byte, len(x.prints))
	at := slices.Clone(x.begins) // the next successor to visit
	var path []int32
	for root := range int32(len(x.prints)) {
		if state[root] != fresh {
			continue
		}
		state[root] = open
		for path = append(path[:0], root); len(path) > 0; {
			s := path[len(path)-1]
			if at[s] == x.begins[s+1] {
				state[s], path = closed, path[:len(path)-1]
				continue
			}
			to := x.follows[at[s]]
			at[s]++
			switch state[to] {
			case open:
				return to
			case fresh:
				state[to] = open
				path = append(path, to)
			}
		}
	}
	return -1
}

// found returns the result of an exploration that ends in a bad state. It repeats the path to it.
func (x *explorer[S]) found(depth int, violation string, at int32) *result {
	r := &result{states: len(x.prints), steps: x.steps, depth: depth, violation: violation}
	var way []int32
	for ; at > 0; at = x.parents[at] {
		way = append(way, at)
	}
	slices.Reverse(way)
	s := x.machine.first()
	for _, to := range way {
		from, done := s, false
		x.machine.next(&from, func(st step, next S) {
			if !done && x.print(&next) == x.prints[to] {
				done, s = true, next
				r.trace = append(r.trace, x.machine.describe(&from, st, &next))
			}
		})
	}
	return r
}
