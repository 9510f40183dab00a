package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
)

// holdBackLimit is for how long a slow item may hold back others. It is far above the time after which they are shared.
const holdBackLimit = 20 * time.Second

// awaitSoon is await within holdBackLimit. It reports what is missing and goes on.
func (b *basket) awaitSoon(n int) {
	b.tb.Helper()
	late := time.After(holdBackLimit)
	for {
		b.mu.Lock()
		have, more := len(b.items), b.more
		b.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-more:
		case <-late:
			b.tb.Errorf("%d of %d items are held back for %v", n-have, n, holdBackLimit)
			return
		}
	}
}

// TestLargeItemsAreReadAheadByBytes has a consumer that waits for the server read items of 50 kB.
func TestLargeItemsAreReadAheadByBytes(t *testing.T) {
	t.Parallel()
	const n, at, size = 300, 150, 50 << 10
	const most = 1<<20/size + 4 // begun, and those whose answers are on their way
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
			producer := start(t, built(mode(builder(t, others, nil)).BuildQueue()))
			padding := strings.Repeat(".", size)
			items := make([]string, n)
			for i := range items {
				items[i] = fmt.Sprint(i, " ", padding)
			}
			putAll(t, producer, items...)
			slowDown(place.Faults(), client)
			place.Faults().ResetTrace()
			g, begun := newGate(items[at]), newBasket(t)
			defer g.open()
			start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				begun.add(item)
				g.pass(item)
				return nil
			})).BuildQueue()))
			g.awaitReached(t)
			read := awaitSilence(t, place.Faults())["getData"]
			if ahead := read - len(begun.await(0)); ahead > most {
				t.Errorf("%d items of %d kB are read ahead, want at most %d", ahead, size>>10, most)
			}
			g.open()
			begun.await(n)
			awaitEmpty(t, others)
		})
	})
}

// TestSlowConsumerClaimsNothingAhead counts the claims of a consumer that works on each item for long.
func TestSlowConsumerClaimsNothingAhead(t *testing.T) {
	t.Parallel()
	const n = 30
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
			putAll(t, start(t, built(mode(builder(t, others, nil)).BuildQueue())), numbered(n)...)
			slowDown(place.Faults(), client)
			got := newBasket(t)
			start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				<-time.After(200 * time.Millisecond)
				got.add(item)
				return nil
			})).BuildQueue()))
			got.await(3) // its pace is known
			place.Faults().ResetTrace()
			got.await(n - 1)
			if requests := sent(place.Faults()); requests["create2"] > n || requests["delete"]+requests["multi"] > n {
				t.Errorf("requests: %v", requests)
			}
			awaitEmpty(t, others)
		})
	})
}

// TestSlowItemInALongQueueKeepsTheOrder has a consumer alone, which gets all items.
func TestSlowItemInALongQueueKeepsTheOrder(t *testing.T) {
	t.Parallel()
	const n, slow = 400, 200
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
			want := numbered(n)
			putAll(t, start(t, built(mode(builder(t, others, nil)).BuildQueue())), want...)
			slowDown(place.Faults(), client)
			got := newBasket(t)
			start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				if item == want[slow] {
					<-time.After(300 * time.Millisecond)
				}
				got.add(item)
				return nil
			})).BuildQueue()))
			if diff := cmp.Diff(want, got.await(n)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			awaitEmpty(t, others)
		})
	})
}
