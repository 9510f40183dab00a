package queue_test

import (
	"fmt"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
)

// TestItemPutAloneIsFoundByIdleConsumersWithFewRequests counts the requests of the producer and of all consumers, each
// with a client of its own, for items that are put one at a time.
func TestItemPutAloneIsFoundByIdleConsumersWithFewRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		consumers         int
		most, mostLocking int // requests for an item
	}{
		{1, 6, 12},
		{10, 6, 12},
		{50, 40, 40},
	} {
		t.Run(fmt.Sprintf("%d consumers", tt.consumers), func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					most := tt.most
					if isLossless(mode) {
						most = tt.mostLocking
					}
					if testenv.Real() { // where a busy machine may wake all consumers at once: each asks for an item once
						most = max(2*most, 3*tt.consumers)
					}
					testHerd(t, mode, tt.consumers, most, place, chroot)
				})
			})
		})
	}
}

func testHerd(t *testing.T, mode modifier, consumers, most int, place testenv.Place, chroot string) {
	t.Helper()
	const warmUp, items = 2, 5
	got := newBasket(t)
	for range consumers {
		start(t, built(mode(builder(t, clientAt(t, place, chroot), got.consume)).BuildQueue()))
	}
	producer := start(t, built(mode(builder(t, clientAt(t, place, chroot), nil)).BuildQueue()))
	awaitSilence(t, place.Faults())
	all := 0
	for i, item := range numbered(warmUp + items) {
		place.Faults().ResetTrace()
		putAll(t, producer, item)
		got.await(i + 1)
		n := awaitSilence(t, place.Faults())
		if i >= warmUp {
			all += sum(n)
			t.Logf("%q: %d requests, %v", item, sum(n), n)
		}
	}
	if all > items*most {
		t.Errorf("%d requests for each item, want at most %d", all/items, most)
	}
	if delivered := got.await(0); len(delivered) != warmUp+items {
		t.Errorf("delivered are %q", delivered)
	}
}
