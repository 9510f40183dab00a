package claim

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestQuarantineEndsOnceAndGrows(t *testing.T) {
	start, refused := time.Now(), errors.New("refused")
	var q Quarantine
	if !q.Add("a", start, refused) || q.Add("a", start, refused) { // so that it lasts two pauses
		t.Error("a cause is new once")
	}
	q.Add("b", start.Add(firstQuarantine/2), refused)
	q.Add("c", start.Add(3*firstQuarantine), refused)
	for _, tt := range []struct {
		after time.Duration
		ended []string
		first time.Duration
	}{
		{firstQuarantine, nil, 3 * firstQuarantine / 2},
		{3 * firstQuarantine / 2, []string{"b"}, 2 * firstQuarantine},
		{3 * firstQuarantine, []string{"a"}, 4 * firstQuarantine},
		{4 * firstQuarantine, []string{"c"}, 0},
		{time.Hour, nil, 0},
	} {
		if ended := q.Ended(start.Add(tt.after)); !slices.Equal(ended, tt.ended) {
			t.Errorf("after %v: %q has ended, want %q", tt.after, ended, tt.ended)
		}
		if tt.first > 0 && !q.First.Equal(start.Add(tt.first)) || tt.first == 0 && !q.First.IsZero() {
			t.Errorf("after %v: the next ends %v after the start, want %v", tt.after, q.First.Sub(start), tt.first)
		}
	}
}
