package barrier

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVerdictOfOneWhoEnters(t *testing.T) {
	tests := []struct {
		name  string
		sight sight
		want  verdict
	}{
		{"no connection", sight{blind: true}, blind},
		{"nothing there", sight{members: 1}, absent},
		{"the others are there, and we are not", sight{children: []string{"b", "c"}, members: 2}, absent},
		{"open, and we are not there", sight{children: []string{"b", "c", "ready"}, members: 2, ready: true}, absent},
		{"alone", sight{present: true, children: []string{"a"}, members: 2}, waiting},
		{"alone, and that is enough", sight{present: true, children: []string{"a"}, members: 1}, complete},
		{"the last", sight{present: true, children: []string{"b", "a"}, members: 2}, complete},
		{"one more than there have to be", sight{present: true, children: []string{"c", "b", "a"}, members: 2}, complete},
		{"ready is no member", sight{present: true, children: []string{"ready", "a"}, members: 2}, waiting},
		{"open", sight{present: true, children: []string{"b", "a", "ready"}, members: 2, ready: true}, opened},
		{"open, and the others have gone", sight{present: true, children: []string{"a", "ready"}, members: 3, ready: true}, opened},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.sight.verdict(); got != tt.want {
				t.Errorf("verdict %d, want %d", got, tt.want)
			}
		})
	}
}

func TestRoundOfOneWhoHasEntered(t *testing.T) {
	for children, members := range map[string]string{"b": "b", "c b": "b c", "b a": "a b", "ready sb": "sb"} {
		s := sight{children: strings.Fields(children), newest: 7}
		want := round{newest: 7, members: strings.Fields(members)}
		if diff := cmp.Diff(want, s.round(), cmp.AllowUnexported(round{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", children, diff)
		}
	}
}

func TestForWhomOneWaitsWhoLeaves(t *testing.T) {
	const began, now = 10, 20
	tests := []struct {
		name, own, children string
		want                exit
	}{
		{"the lowest goes last", "a", "c b a ready", exit{others: []string{"b", "c"}, newest: now, last: true, ready: true}},
		{"another does not", "b", "c b a ready", exit{others: []string{"a", "c"}, newest: now, ready: true}},
		{"nor who has gone already", "b", "c d ready", exit{others: []string{"c", "d"}, newest: now, ready: true}},
		{"alone", "a", "a ready", exit{newest: now, last: true, ready: true}},
		{"all have left", "b", "", exit{newest: began}},
		{"and some have come again", "b", "a c", exit{others: []string{"a", "c"}, newest: began}},
		{"somebody did not wait", "a", "a", exit{newest: began}},
		{"and has come again", "a", "a b", exit{others: []string{"b"}, newest: began}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := exitOf(strings.Fields(tt.children), now, tt.own, round{newest: began})
			if len(got.others) == 0 {
				got.others = nil
			}
			if diff := cmp.Diff(&tt.want, got, cmp.AllowUnexported(exit{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
