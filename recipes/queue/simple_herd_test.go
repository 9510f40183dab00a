package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

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
