package chaos_test

import (
	"errors"
	"testing"

	"github.com/gocurator/curator/internal/testenv/chaos"
)

func TestWitness(t *testing.T) {
	alone := func(node, owner string) chaos.Grant { return chaos.Grant{Node: node, Owner: owner, Alone: true} }
	shared := func(node string) chaos.Grant { return chaos.Grant{Node: node, Owner: node} }
	for _, tt := range []struct {
		name   string
		most   int
		before []chaos.Grant
		now    chaos.Grant
		nodes  []string
		want   bool
	}{
		{"the one before is gone", 0, []chaos.Grant{alone("a", "1")}, alone("b", "2"), []string{"b"}, true},
		{"the one before is there", 0, []chaos.Grant{alone("a", "1")}, alone("b", "2"), []string{"a", "b"}, false},
		{"others only wait", 0, nil, alone("b", "2"), []string{"b", "c", "d"}, true},
		{"our own is gone already", 0, []chaos.Grant{alone("a", "1")}, alone("b", "2"), []string{"a"}, true},
		{"the same again", 0, []chaos.Grant{alone("a", "1")}, alone("a", "1"), []string{"a"}, true},
		{
			"a writer that reads", 9,
			[]chaos.Grant{alone("a", "1")},
			chaos.Grant{Node: "b", Owner: "1"},
			[]string{"a", "b"},
			true,
		},
		{"a reader with a writer", 9, []chaos.Grant{alone("a", "1")}, shared("b"), []string{"a", "b"}, false},
		{"as many as may be", 2, []chaos.Grant{shared("a")}, shared("b"), []string{"a", "b", "c"}, true},
		{"one too many", 2, []chaos.Grant{shared("a"), shared("b")}, shared("c"), []string{"a", "b", "c"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var nodes []string
			f := &failing{TB: t}
			w, s := chaos.NewWitness(tt.most, func() ([]string, error) { return nodes, nil }), chaos.New(f)
			for _, g := range tt.before {
				nodes = append(nodes, g.Node)
				w.Granted(s, g)
			}
			nodes = tt.nodes
			w.Granted(s, tt.now)
			_, _, overlaps := w.Counts()
			if got := !f.Failed(); got != tt.want || (overlaps == 0) != tt.want {
				t.Errorf("allowed: %t, %d overlaps: %q", got, overlaps, f.errors)
			}
		})
	}
}

func TestWitnessWithoutNodesReportsNothing(t *testing.T) {
	w, s := chaos.NewWitness(0, func() ([]string, error) { return nil, errors.New("no answer") }), chaos.New(t)
	w.Granted(s, chaos.Grant{Node: "a", Owner: "1", Alone: true})
	if looks, blind, overlaps := w.Counts(); looks != 0 || blind != 1 || overlaps != 0 {
		t.Errorf("%d looks, %d blind, %d overlaps", looks, blind, overlaps)
	}
}
