package queue_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// manyEvents is how many nodes are deleted while nobody takes the events of a consumer: more than it keeps.
const manyEvents = 700

// putPrioritized puts items of one priority, and returns their paths.
func putPrioritized(t *testing.T, client *framework.Client, mode modifier, items []string) (paths map[string]string) {
	t.Helper()
	ctx := testenv.Context(t)
	producer := built(mode(builder(t, client, nil)).PutWindow(len(items)).BuildPriorityQueue(0))
	must(t, producer.Start())
	paths = make(map[string]string)
	for _, item := range items {
		put, err := producer.PutAsync(ctx, item, 0)
		must(t, err)
		paths[item], err = put.Wait(ctx)
		must(t, err)
	}
	must(t, producer.Close())
	return paths
}

// TestPathDeletedAmongManyEventsIsNoticedByHolder deletes the path of a queue, with more items than a consumer keeps
// events, while the consumer is at the first item, and puts another item with its name.
func TestPathDeletedAmongManyEventsIsNoticedByHolder(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, manyEvents} {
		t.Run(fmt.Sprintf("%d items", n), func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
					oldItems, newItems := epoch(0, n), epoch(1, 3)
					putPrioritized(t, others, mode, oldItems)
					g, got, errs := newGate(oldItems[0]), newBasket(t), newReports()
					defer g.open()
					start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
						g.pass(item)
						got.add(item)
						return nil
					})).OnError(errs.add).BuildPriorityQueue(0)))
					g.awaitReached(t)
					awaitSilence(t, place.Faults())
					deleteQueue(t, others)
					paths := putPrioritized(t, others, mode, newItems)
					g.open()
					awaitEmpty(t, others)
					awaitSilence(t, place.Faults())
					times, reported := timesOf(got.await(0)), errs.paths()
					for _, item := range newItems {
						if times[item] == 0 && reported[paths[item]] == nil {
							t.Errorf("%q is gone and not reported", item)
						}
					}
				})
			})
		})
	}
}

// TestPathDeletedAmongManyEventsIsNoticedByDeletion holds the deletion of an item back meanwhile.
func TestPathDeletedAmongManyEventsIsNoticedByDeletion(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, manyEvents} {
		t.Run(fmt.Sprintf("%d items", n), func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				ctx, chroot := testenv.Context(t), testenv.Chroot(t)
				direct := testenv.Addr(t) + chroot
				others := newClient(t, direct)
				oldItems, newItems := epoch(0, n), epoch(1, 3)
				putPrioritized(t, others, mode, oldItems)
				proxy, connect := newProxy(t, chroot)
				held := proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"delete", "multi"}, Path: chroot + queuePath + "/*", Count: 1,
					Action: curatortest.HoldRequest,
				})
				got, errs := newBasket(t), newReports()
				q := start(t, built(mode(builder(t, newClient(t, connect), got.consume)).OnError(errs.add).
					BuildPriorityQueue(0)))
				must(t, held.Wait(ctx))
				deleteQueue(t, others)
				paths := putPrioritized(t, others, mode, newItems)
				held.Release()
				awaitNothing(t, direct)
				must(t, q.Close())
				times, reported := timesOf(got.await(0)), errs.paths()
				for _, item := range newItems {
					if times[item] == 0 && reported[paths[item]] == nil {
						t.Errorf("%q is gone and not reported", item)
					}
				}
			})
		})
	}
}
