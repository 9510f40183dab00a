package claim

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// TestDeletionOfEarlierLockLeavesLockAlone has the event of a deletion come at each moment of a lock.
func TestDeletionOfEarlierLockLeavesLockAlone(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	close(answered)
	for name, tt := range map[string]struct {
		before, after <-chan struct{} // the answer to the create, when the event comes and afterwards
		want          bool
	}{
		"before the create is noted, which is not answered":  {nil, make(chan struct{}), false},
		"before the create is noted, which is answered then": {nil, answered, true},
		"before the answer": {make(chan struct{}), nil, false},
		"after the answer":  {answered, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := NewWatch(&node.Paths{Queue: "/queue", Locks: "/locks"})
			l := &Lock{name: "queue-0000000000"}
			w.follow(l)
			if tt.before != nil {
				w.submitted(l, tt.before)
			}
			w.note(zk.Event{Type: zk.EventNodeDeleted, State: zk.StateHasSession, Path: "/locks/" + l.name})
			if tt.after != nil {
				w.submitted(l, tt.after)
			}
			if got := l.Deleted.Load(); got != tt.want {
				t.Errorf("deleted is %t, want %t", got, tt.want)
			}
		})
	}
}

// TestForgottenLockLeavesNothing has two claims follow the lock of an item, one after the other.
func TestForgottenLockLeavesNothing(t *testing.T) {
	t.Parallel()
	w := NewWatch(&node.Paths{Queue: "/queue", Locks: "/locks"})
	first, second := &Lock{name: "queue-0000000000"}, &Lock{name: "queue-0000000000"}
	w.follow(first)
	w.follow(second)
	w.forget(first)
	w.note(zk.Event{Type: zk.EventNodeDeleted, State: zk.StateHasSession, Path: "/locks/" + first.name})
	if first.Deleted.Load() || !second.Deleted.Load() {
		t.Errorf("deleted are %t, which is forgotten, and %t", first.Deleted.Load(), second.Deleted.Load())
	}
	if w.forget(second); len(w.locks) > 0 {
		t.Errorf("%d items are followed", len(w.locks))
	}
}
