package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// TestTakeThatWasOvertakenLeavesTheNextElementToOthers has another client take an element before the Take that waits
// for it has listed the queue. With the next one the Take pauses, so the other is first without a race.
func TestTakeThatWasOvertakenLeavesTheNextElementToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		ctx, slow := testenv.Context(t), clientAt(t, server, "")
		others := simple(clientAt(t, server, ""))
		got := make(chan string, 1)
		go func() {
			data, _ := simple(slow).Take(ctx)
			got <- string(data)
		}()
		awaitSilence(t, server.Faults())
		listing := server.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, SessionID: slow.SessionID(), Count: 1, Action: curatortest.HoldRequest,
		})
		offer(t, others, "first")
		must(t, listing.Wait(ctx))
		want(t, "first")(others.Poll(ctx))
		listing.Release()
		awaitSilence(t, server.Faults())
		offer(t, others, "second")
		synctest.Wait() // no time passes: the Take has the event, and pauses
		want(t, "second")(others.Poll(ctx))
		awaitSilence(t, server.Faults())
		offer(t, others, "third")
		if data := <-got; data != "third" {
			t.Errorf("it took %q", data)
		}
	})
}

// TestElementOfferedAloneIsFoundByIdleTakesWithFewRequests counts the requests for elements that are offered one at a
// time to many who wait, each with a client of its own.
func TestElementOfferedAloneIsFoundByIdleTakesWithFewRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ consumers, most int }{{1, 12}, {10, 24}, {50, 80}} {
		t.Run(fmt.Sprintf("%d consumers", tt.consumers), func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				most := tt.most
				if testenv.Real() { // where a busy machine may have everybody go for the element, and list the queue again
					most = max(most, 6*tt.consumers)
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
