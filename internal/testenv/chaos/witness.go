package chaos

import (
	"fmt"
	"maps"
	"sync"
)

// Grant is a node that has its turn.
type Grant struct {
	Node  string // its name
	Owner string // those of one owner do not exclude each other
	Alone bool   // excludes those of all other owners
}

// Witness checks the grants at the server: a grant is held until its node is gone, whatever the client believes. So no
// fault excuses two exclusive grants at once.
type Witness struct {
	most int
	list func() ([]string, error)

	mu      sync.Mutex
	granted map[string]Grant // those whose nodes may be there
	looks   int
	blind   int
	broken  int
}

// NewWitness returns the witness of a thing that most non-exclusive holders may have at once. list returns the names of
// all nodes at the server at one moment after the call began.
func NewWitness(most int, list func() ([]string, error)) *Witness {
	return &Witness{most: most, list: list, granted: map[string]Grant{}}
}

// Granted records grants, and checks all grants that are held now. Call it at once after the grant.
func (w *Witness) Granted(s *Test, grants ...Grant) {
	s.tb.Helper()
	w.mu.Lock()
	for _, g := range grants {
		w.granted[g.Node] = g
	}
	// Before the list: otherwise a grant could count whose node was still waiting at the time of the list.
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
		delete(w.granted, node) // a deleted node does not come back
	}
	if err := tooMany(held, w.most); err != nil {
		w.broken++
		s.Errorf("granted %v: at the server %v", grants, err)
	}
}

// tooMany returns an error if grants that are held at once exclude each other. most limits the non-exclusive ones.
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

// Counts returns the number of checks, of checks without a reply of the server, and of checks that found too many
// grants.
func (w *Witness) Counts() (looks, blind, overlaps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks, w.blind, w.broken
}
