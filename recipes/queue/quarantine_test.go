package queue

import (
	"errors"
	"testing"
	"time"
)

// TestQuarantineThatEndsBetweenTwoLooksIsWaitedFor has the pause of an item end after the look for those that have ended,
// and before the waiting for the next.
func TestQuarantineThatEndsBetweenTwoLooksIsWaitedFor(t *testing.T) {
	t.Parallel()
	var q quarantine
	began := time.Now()
	q.add("a", began, errors.New("broken"))
	end := began.Add(firstQuarantine)
	if names := q.ended(end.Add(-1)); len(names) > 0 {
		t.Fatalf("%q may be tried again before the end of its pause", names)
	}
	if next := q.next(); !next.Equal(end) {
		t.Errorf("the next is at %v, want %v", next, end)
	}
	if names := q.ended(end.Add(2)); len(names) != 1 {
		t.Errorf("%q may be tried again", names)
	}
	if next := q.next(); !next.IsZero() {
		t.Errorf("the next is at %v after all have ended", next)
	}
}
