package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

// A consumer that finds the queue empty watches all items. Events cost more than lists when items come faster than they
// are consumed, and while there are very many.
func TestBusyConsumerListsInsteadOfWatching(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		items int
		held  string // the consumer stops at it until the others are put
		until string // it stops here while the watches must end
	}{
		{"items in a row", 400, "item 0", "item 399"},
		{"many items", 1200, "item 0", "item 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					client := clientAt(t, place, chroot)
					first, last := newGate(tt.held), newGate(tt.until)
					defer first.open()
					defer last.open()
					consume := func(_ context.Context, item string) error {
						first.pass(item)
						last.pass(item)
						return nil
					}
					start(t, built(mode(builder(t, client, consume)).BuildQueue()))
					producer := start(t, built(mode(builder(t, clientAt(t, place, chroot), nil)).BuildQueue()))
					awaitSilence(t, place.Faults())
					items := numbered(tt.items)
					putAll(t, producer, items[0])
					first.awaitReached(t)
					place.Faults().ResetTrace()
					putAll(t, producer, items[1:]...)
					if n := sent(place.Faults())["removeWatches"]; n > 0 {
						t.Fatalf("watches are removed %d times before the consumer is busy", n)
					}
					first.open()
					last.awaitReached(t)
					watches := 1
					if isLossless(mode) {
						watches = 2
					}
					isOver := func() bool { return countOf(place.Faults(), "removeWatches") >= watches }
					testenv.Eventually(t, isOver, "the watches are removed")
				})
			})
		})
	}
}

// TestWatchOutlivesItemsThatArePutAlone puts more items than a consumer takes in a row from a queue that it watches. It
// waits for each of them. The consumer counts the items once a minute, and lists them if one comes at that moment.
func TestWatchOutlivesItemsThatArePutAlone(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			got := newBasket(t)
			start(t, built(mode(builder(t, clientAt(t, place, chroot), got.consume)).BuildQueue()))
			producer := start(t, built(mode(builder(t, clientAt(t, place, chroot), nil)).BuildQueue()))
			items := numbered(300)
			putAll(t, producer, items[0])
			got.await(1)
			awaitSilence(t, place.Faults())
			place.Faults().ResetTrace()
			began := time.Now()
			for i, item := range items[1:] {
				putAll(t, producer, item)
				got.await(i + 2)
			}
			n, minutes := awaitSilence(t, place.Faults()), int(time.Since(began)/time.Minute)
			if n["getChildren2"] > minutes || n["removeWatches"] > 0 {
				t.Errorf("requests for %d items: %v", len(items)-1, n)
			}
		})
	})
}
