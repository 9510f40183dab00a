package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// A proxy ends the connection at the request of a recursive watch. The queue is listed instead.
func TestQueueBehindProxyWithoutRecursiveWatchesGoesOn(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		faults := place.Faults()
		faults.ResetTrace()
		faults.Add(curatortest.Rule{Ops: []string{"addWatch"}, Action: curatortest.CutBefore})
		got := newBasket(t)
		start(t, built(builder(t, clientAt(t, place, chroot), got.consume).BuildQueue()))
		producer := start(t, built(builder(t, clientAt(t, place, chroot), nil).BuildQueue()))
		for i, item := range numbered(5) {
			putAll(t, producer, item)
			if diff := cmp.Diff(numbered(5)[:i+1], got.await(i+1)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
		if n := countOf(faults, "connect"); n > 2*(1+3+3) {
			t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}

// A proxy ends the connection at the creation of a container. The path is a persistent node instead.
func TestSimpleQueueBehindProxyWithoutContainersGoesOn(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		faults := place.Faults()
		faults.ResetTrace()
		faults.Add(curatortest.Rule{Ops: []string{"createContainer"}, Action: curatortest.CutBefore})
		ctx, q := testenv.Context(t), simple(clientAt(t, place, chroot))
		taken := make(chan string, 1)
		go func() {
			data, err := q.Take(ctx)
			if err != nil {
				t.Error(err)
			}
			taken <- string(data)
		}()
		awaitSilence(t, faults)
		offer(t, q, "a")
		if got := <-taken; got != "a" {
			t.Errorf("got %q", got)
		}
		if n := countOf(faults, "connect"); n > 1+3+3 {
			t.Errorf("%d connections\n%s", n, curatortest.FormatTrace(faults.Trace()))
		}
	})
}
