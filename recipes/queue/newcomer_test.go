package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
)

// TestUrgentItemWaitsForNoMoreThanThePromisedNumber puts urgent items at many moments while a consumer has claimed
// ahead as far as it may, and counts the items that begin between the end of a put and the urgent item.
func TestUrgentItemWaitsForNoMoreThanThePromisedNumber(t *testing.T) {
	t.Parallel()
	for _, refresh := range []int{1, 2, 10, 50} {
		t.Run(fmt.Sprintf("refresh after %d", refresh), func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					testNewcomers(t, mode, refresh, place, chroot)
				})
			})
		})
	}
}

func testNewcomers(t *testing.T, mode modifier, refresh int, place testenv.Place, chroot string) {
	t.Helper()
	const urgent = "urgent"
	ctx := testenv.Context(t)
	others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
	producer := start(t, built(mode(builder(t, others, nil)).BuildPriorityQueue(0)))
	n := 10 * max(refresh, 20)
	for i := range n {
		must(t, producer.Put(ctx, fmt.Sprint(i), 5))
	}
	must(t, producer.FlushPuts(ctx))
	slowDown(place.Faults(), client)
	var begun, puts, overtaken, most int
	pending := false
	got := newBasket(t)
	start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
		switch {
		case item == urgent:
			most, pending = max(most, overtaken), false
		case pending:
			overtaken++
			fallthrough
		default:
			begun++
		}
		// The next is put a little later each time, so that every phase of claiming has one.
		if !pending && begun%7 == puts%7 && begun < n-3*refresh {
			puts, overtaken, pending = puts+1, 0, true
			if err := errors.Join(producer.Put(ctx, urgent, 1), producer.FlushPuts(ctx)); err != nil {
				t.Error(err)
			}
		}
		got.add(item)
		return nil
	})).BuildPriorityQueue(refresh)))
	items := got.await(n)
	for !slices.Contains(items, fmt.Sprint(n-1)) {
		items = got.await(len(items) + 1)
	}
	awaitEmpty(t, others)
	if most > refresh {
		t.Errorf("%d items go before an urgent one, want at most %d", most, refresh)
	}
	if puts < 3 {
		t.Errorf("only %d urgent items", puts)
	}
	ordinary := slices.DeleteFunc(items, func(item string) bool { return item == urgent })
	for i, item := range ordinary {
		if item != fmt.Sprint(i) {
			t.Fatalf("item %s is number %d", item, i)
		}
	}
}

// listedDue is how many items are due already.
const listedDue = 300

// TestItemDueEarlierGoesBeforeThoseListed puts an item into a delay queue that is due before all of a long list.
func TestItemDueEarlierGoesBeforeThoseListed(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			ctx, client := testenv.Context(t), clientAt(t, place, chroot)
			producer := start(t, built(mode(builder(t, client, nil)).BuildDelayQueue()))
			due := time.Now().Add(-time.Hour)
			for i := range listedDue {
				must(t, producer.Put(ctx, fmt.Sprint(i), due.Add(time.Duration(i)*time.Second)))
			}
			must(t, producer.FlushPuts(ctx))
			got := newBasket(t)
			var first atomic.Bool
			start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				if !first.Swap(true) {
					err := errors.Join(producer.Put(ctx, "earlier", due.Add(-time.Hour)), producer.FlushPuts(ctx))
					if err != nil {
						t.Error(err)
					}
				}
				got.add(item)
				return nil
			})).Prefetch(1).BuildDelayQueue()))
			// The first item, and those that are claimed ahead.
			if at := slices.Index(got.await(listedDue+1), "earlier"); at < 1 || at > 4 {
				t.Errorf("the item that is due first comes after %d others", at)
			}
			awaitEmpty(t, client)
		})
	})
}

// TestItemPutBackAndDueGoesBeforeThoseListed has the first item of a long list fail once.
func TestItemPutBackAndDueGoesBeforeThoseListed(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		producer := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildDelayQueue()))
		due := time.Now().Add(-time.Hour)
		for i := range listedDue {
			must(t, producer.Put(ctx, fmt.Sprint(i), due.Add(time.Duration(i)*time.Second)))
		}
		must(t, producer.FlushPuts(ctx))
		got := newBasket(t)
		var failed atomic.Bool
		start(t, built(builder(t, client, func(_ context.Context, item string) error {
			<-time.After(time.Millisecond)
			got.add(item)
			if item == "0" && !failed.Swap(true) {
				return errors.New("broken")
			}
			return nil
		}).LockPath(lockPath).OnError(newReports().add).BuildDelayQueue()))
		items := got.await(listedDue + 1)
		if at := slices.Index(items[1:], "0"); at < 0 || at > listedDue/2 {
			t.Errorf("the item that was put back comes after %d others", at)
		}
		awaitEmpty(t, client)
	})
}

// TestItemsThatAreNotDueCostNothing counts the requests for single due items of a queue with many that are not due.
func TestItemsThatAreNotDueCostNothing(t *testing.T) {
	t.Parallel()
	const waiting, due = 500, 20
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, chroot := testenv.Context(t), testenv.Chroot(t)
		others := newClient(t, testenv.Addr(t)+chroot)
		producer := start(t, built(mode(builder(t, others, nil)).PutWindow(1000).BuildDelayQueue()))
		later := time.Now().Add(time.Hour)
		for i := range waiting {
			must(t, producer.Put(ctx, "later", later.Add(time.Duration(i)*time.Millisecond)))
		}
		must(t, producer.FlushPuts(ctx))
		proxy, connect := newProxy(t, chroot)
		got := newBasket(t)
		start(t, built(mode(builder(t, newClient(t, connect), got.consume)).BuildDelayQueue()))
		for i := range due + 1 {
			if i == 1 { // it has listed what is there
				awaitSilence(t, proxy.Faults())
				proxy.Faults().ResetTrace()
			}
			must(t, producer.Put(ctx, "now", time.Now()))
			got.await(i + 1)
		}
		n := awaitSilence(t, proxy.Faults())
		lists := 0
		for op, times := range n {
			if strings.HasPrefix(op, "getChildren") {
				lists += times
			}
		}
		if lists > 2 || sum(n) > 6*due {
			t.Errorf("requests for %d due items: %v", due, n)
		}
	})
}
