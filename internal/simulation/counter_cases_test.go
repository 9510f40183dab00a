package simulation_test

import (
	"strings"
	"testing"
)

func TestJudgeOfCounter(t *testing.T) {
	for name, tt := range map[string]struct {
		applied, open []part
		number        int64
		want          string
	}{
		"nothing":                     {},
		"all applied":                 {applied: []part{{from: 1, to: 3}, {from: 0, to: 1}}, number: 3},
		"an open one was applied":     {applied: []part{{from: 2, to: 3}}, open: []part{{from: 0, to: 2}}, number: 3},
		"an open one was not applied": {applied: []part{{from: 0, to: 3}}, open: []part{{from: 0, to: 2}}, number: 3},
		"two open ones in a row":      {open: []part{{from: 2, to: 3}, {from: 0, to: 2}}, number: 3},
		"one was counted twice":       {applied: []part{{from: 0, to: 1}}, number: 2, want: "no open change"},
		"one was lost": {
			applied: []part{{from: 0, to: 1}, {from: 0, to: 1}}, number: 1, want: "no open change",
		},
		"two have the same place": {
			applied: []part{{from: 0, to: 2}, {from: 1, to: 2}}, number: 2, want: "no open change",
		},
		"an open one was counted twice": {open: []part{{from: 0, to: 1}}, number: 2, want: "no open change"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c := &counter{world: w, path: "/counter", applied: tt.applied, open: tt.open, number: tt.number}
				c.judge()
				if w.violation == "" != (tt.want == "") || !strings.Contains(w.violation, tt.want) {
					t.Errorf("violation %q, want %q", w.violation, tt.want)
				}
			})
		})
	}
}
