package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// TestElementOfferedAloneIsFoundByIdleTakesWithFewRequests counts the requests for elements that are offered one at a
// time to many who wait, each with a client of its own.
func TestElementOfferedAloneIsFoundByIdleTakesWithFewRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ consumers, most int }{{1, 6}, {10, 6}, {50, 40}} {
		t.Run(fmt.Sprintf("%d consumers", tt.consumers), func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				most := tt.most
				if testenv.Real() { // where a busy machine may have everybody go for the element, but nobody list the queue
					most = max(most, 3*tt.consumers)
				}
				testSimpleHerd(t, tt.consumers, most, place, chroot)
			})
		})
	}
}

func testSimpleHerd(t *testing.T, consumers, most int, place testenv.Place, chroot string) {
	t.Helper()
	const warmUp, elements = 2, 5
	ctx, cancel := context.WithCancel(testenv.Context(t))
	got := newBasket(t)
	client := clientAt(t, place, chroot)
	_, err := client.Create().ForPath(ctx, queuePath, nil) // no container, which the server removes between the elements
	must(t, err)
	var taking sync.WaitGroup
	defer taking.Wait()
	defer cancel()
	for range consumers {
		q := simple(clientAt(t, place, chroot))
		taking.Go(func() {
			for {
				data, err := q.Take(ctx)
				if err != nil {
					return
				}
				got.add(string(data))
			}
		})
	}
	producer := simple(client)
	awaitSilence(t, place.Faults())
	all := 0
	for i, element := range numbered(warmUp + elements) {
		place.Faults().ResetTrace()
		offer(t, producer, element)
		got.await(i + 1)
		n := awaitSilence(t, place.Faults())
		if i >= warmUp {
			all += sum(n)
			t.Logf("%q: %d requests, %v", element, sum(n), n)
		}
	}
	if all > elements*most {
		t.Errorf("%d requests for each element, want at most %d", all/elements, most)
	}
}

// TestTakeThatHasLostItsElementLeavesTheNextToOthers has an element removed by another while its deletion is on its
// way.
func TestTakeThatHasLostItsElementLeavesTheNextToOthers(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, cancel := context.WithCancel(testenv.Context(t))
		slowClient := clientAt(t, place, chroot)
		slow, fast := simple(slowClient), simple(clientAt(t, place, chroot))
		var taking sync.WaitGroup
		defer taking.Wait()
		defer cancel()
		taking.Go(func() { _, _ = slow.Take(ctx) })
		awaitSilence(t, place.Faults())
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"delete"}, SessionID: slowClient.SessionID(), Count: 1, Action: curatortest.HoldRequest,
		})
		offer(t, fast, "first")
		must(t, held.Wait(ctx))
		want(t, "first")(fast.Poll(ctx))
		held.Release()
		awaitSilence(t, place.Faults())
		got := make(chan string, 1)
		taking.Go(func() {
			data, _ := fast.Take(ctx)
			got <- string(data)
		})
		awaitSilence(t, place.Faults())
		place.Faults().ResetTrace()
		offer(t, fast, "second")
		if g := <-got; g != "second" {
			t.Errorf("got %q", g)
		}
		if testenv.Real() { // where the pause of the slow one may end before the fast one has the element
			return
		}
		awaitSilence(t, place.Faults())
		for _, e := range place.Faults().Trace() {
			if e.SessionID == slowClient.SessionID() && !e.Reply && e.Xid > 0 && e.Op != "heartbeat" {
				t.Errorf("a request for the second: %s %s", e.Op, e.Path)
			}
		}
	})
}
