package chaos

import (
	"fmt"
	"maps"
	"sync"
)

// Grant is what somebody was granted.
type Grant struct {
	Node  string // its name
	Owner string // those of one owner do not exclude each other
	Alone bool   // excludes those of all other owners
}

// Witness sees what of the grants the server still knows: what was granted is held until its node is gone, whatever the
// client believes. So a fault is no excuse for two at once.
type Witness struct {
	most int
	list func() ([]string, error)

	mu      sync.Mutex
	granted map[string]Grant // those whose nodes may be there
	looks   int
	blind   int
	broken  int
}

// NewWitness returns the witness of a thing that so many may hold at once, of those who are not to be alone. list
// returns the names of the nodes that the server has, all that were there at one moment after the call began.
func NewWitness(most int, list func() ([]string, error)) *Witness {
	return &Witness{most: most, list: list, granted: map[string]Grant{}}
}

// Granted notes grants and looks who holds the thing now. Call it as soon as they are granted.
func (w *Witness) Granted(s *Test, grants ...Grant) {
	s.tb.Helper()
	w.mu.Lock()
	for _, g := range grants {
		w.granted[g.Node] = g
	}
	// Before the list: else one would count that was only waiting when the server was asked.
	known := maps.Clone(w.granted)
	w.mu.Unlock()
	nodes, err := w.list()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.blind++
		return
	}
	w.looks++
	var held []Grant
	for _, node := range nodes {
		if g, ok := known[node]; ok {
			held = append(held, g)
			delete(known, node)
		}
	}
	for node := range known {
		delete(w.granted, node) // what is gone does not come back
	}
	if err := tooMany(held, w.most); err != nil {
		w.broken++
		s.Errorf("granted %v: at the server %v", grants, err)
	}
}

// tooMany returns an error if what is held at once excludes each other; most is for those who are not to be alone.
func tooMany(held []Grant, most int) error {
	others := 0
	for _, g := range held {
		if !g.Alone {
			others++
			continue
		}
		for _, other := range held {
			if other.Owner != g.Owner {
				return fmt.Errorf("%v is not alone, but with %v", g, other)
			}
		}
	}
	if others > most {
		return fmt.Errorf("%d hold what %d may: %v", others, most, held)
	}
	return nil
}

// Counts returns how often the witness has looked, how often it could not because the server did not answer, and how
// often there were too many.
func (w *Witness) Counts() (looks, blind, overlaps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks, w.blind, w.broken
}
