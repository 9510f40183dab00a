package queue

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// TestCallThatDoesNotWaitWakesOneThatDoes has a Peek learn of an element while a Take is about to wait for it.
func TestCallThatDoesNotWaitWakesOneThatDoes(t *testing.T) {
	t.Parallel()
	f := newElementFetcher(nil, "/queue")
	f.watching, f.stale = true, false
	f.watch.note(zk.Event{Type: zk.EventNodeCreated, State: zk.StateHasSession, Path: "/queue/qn-0000000000"})
	f.takeNews(&call{})
	if f.backlog.free != 1 || len(f.watch.wake) == 0 {
		t.Errorf("%d elements are known, %d calls are to wake up", f.backlog.free, len(f.watch.wake))
	}
}
