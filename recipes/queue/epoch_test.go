package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// itemBytes is where the only item is in the bytes of a node.
const itemBytes = 9

// deleteQueue deletes the path of a queue with all that is in it, and returns the items that it has deleted itself.
func deleteQueue(tb testing.TB, client *framework.Client) (deleted []string) {
	tb.Helper()
	ctx := testenv.Context(tb)
	for {
		for _, name := range names(tb, client, queuePath) {
			data, err := client.GetData().ForPath(ctx, queuePath+"/"+name)
			if err == nil {
				err = client.Delete().ForPath(ctx, queuePath+"/"+name)
			}
			switch {
			case err == nil:
				deleted = append(deleted, string(data[itemBytes:len(data)-1]))
			case !errors.Is(err, zk.ErrNoNode):
				tb.Fatal(err)
			}
		}
		err := client.Delete().Quietly().ForPath(ctx, queuePath)
		if err == nil {
			return deleted
		}
		if !errors.Is(err, zk.ErrNotEmpty) {
			tb.Fatal(err)
		}
	}
}

// epoch returns n items whose names say in which life of the path they were put.
func epoch(number, n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("epoch %d, item %d", number, i)
	}
	return items
}

// putEpoch puts items with a producer of their own, and returns their paths. What a producer does whose path is deleted
// is another matter.
func putEpoch(t *testing.T, client *framework.Client, mode modifier, items []string) (paths map[string]string) {
	t.Helper()
	producer := built(mode(builder(t, client, nil)).BuildQueue())
	must(t, producer.Start())
	paths = make(map[string]string)
	producer.PutListeners().AddListener(func(_ context.Context, ev queue.PutEvent[string]) {
		paths[ev.Items[0]] = ev.Path
	})
	putAll(t, producer, items...)
	must(t, producer.Close()) // its listeners have been called
	return paths
}

// TestPathMadeAnewUnderConsumerLosesNothing deletes the path of a queue while a consumer has read ahead, and claimed
// ahead, and puts items with the same names in it.
func TestPathMadeAnewUnderConsumerLosesNothing(t *testing.T) {
	t.Parallel()
	const n, at = 300, 40
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
			oldItems, newItems := epoch(0, n), epoch(1, n)
			putEpoch(t, others, mode, oldItems)
			slowDown(place.Faults(), client)
			g, got, errs := newGate(oldItems[at]), newBasket(t), newReports()
			defer g.open()
			start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				g.pass(item)
				got.add(item)
				return nil
			})).OnError(errs.add).BuildQueue()))
			g.awaitReached(t)
			awaitSilence(t, place.Faults())
			deleteQueue(t, others)
			paths := putEpoch(t, others, mode, newItems)
			g.open()
			awaitEmpty(t, others)
			awaitSilence(t, place.Faults())

			times, reported, lost := timesOf(got.await(0)), errs.paths(), 0
			for _, item := range newItems {
				switch {
				case times[item] == 1:
				case times[item] > 1:
					t.Errorf("%q is delivered %d times", item, times[item])
				case reported[paths[item]] == nil:
					lost++
				}
			}
			if lost > 0 {
				t.Errorf("%d of %d confirmed items are gone and not reported", lost, n)
			}
			if len(reported) > n/10 {
				t.Errorf("%d items are reported though no request was on its way", len(reported))
			}
		})
	})
}

// timesOf returns how often each item is in a list.
func timesOf(items []string) map[string]int {
	times := make(map[string]int)
	for _, item := range items {
		times[item]++
	}
	return times
}

// TestPathMadeAnewUnderPullerLosesNothing is done with items after others have got their names.
func TestPathMadeAnewUnderPullerLosesNothing(t *testing.T) {
	t.Parallel()
	const n = 10
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		others := newClient(t, connect)
		putEpoch(t, others, mode, epoch(0, n))
		q := start(t, built(mode(builder(t, newClient(t, connect), nil)).BuildQueue()))
		var held []queue.Item[string]
		for item, err := range q.Items(ctx) {
			must(t, err)
			if held = append(held, item); len(held) == n {
				break
			}
		}
		deleteQueue(t, others)
		newItems := epoch(1, n)
		putEpoch(t, others, mode, newItems)
		for i, item := range held {
			if i%2 == 0 {
				_ = item.Done(ctx) // it was deleted: whether that is an error is of no interest here
			} else {
				_ = item.Requeue(ctx)
			}
		}
		next, stop := pullAll(ctx, start(t, built(mode(builder(t, others, nil)).BuildQueue())))
		defer stop()
		missing := timesOf(newItems)
		for len(missing) > 0 {
			if len(children(t, connect, queuePath)) == 0 {
				t.Fatalf("%d of %d confirmed items are gone", len(missing), n)
			}
			delete(missing, next(t))
		}
	})
}

// TestPathMadeAnewAgainAndAgainLosesNothing deletes the path while a consumer claims, several times.
func TestPathMadeAnewAgainAndAgainLosesNothing(t *testing.T) {
	t.Parallel()
	const rounds, n = 20, 100
	forEachMode(t, func(t *testing.T, mode modifier) {
		connect := testenv.ConnectString(t)
		others := newClient(t, connect)
		paths, got, errs := make(map[string]string), newBasket(t), newReports()
		q := start(t, built(mode(builder(t, newClient(t, connect), got.consume)).OnError(errs.add).BuildQueue()))
		var all, deleted []string
		for round := range rounds {
			items := epoch(round, n)
			all = append(all, items...)
			maps.Copy(paths, putEpoch(t, others, mode, items))
			deleted = append(deleted, deleteQueue(t, others)...)
		}
		last := epoch(rounds, n)
		maps.Copy(paths, putEpoch(t, others, mode, last))
		awaitNothing(t, connect)
		must(t, q.Close())
		times, gone, reported := timesOf(got.await(0)), timesOf(deleted), errs.paths()
		lost := 0
		for _, item := range append(all, last...) {
			if times[item] == 0 && gone[item] == 0 && reported[paths[item]] == nil {
				lost++
			}
			if times[item] > 1 {
				t.Errorf("%q is delivered %d times", item, times[item])
			}
		}
		if lost > 0 {
			t.Errorf("%d of %d confirmed items are gone and not reported", lost, len(all)+len(last))
		}
	})
}

// TestPathMadeAnewWhileDeleteIsOnItsWayIsReported holds the delete of an item back until another item has its name.
func TestPathMadeAnewWhileDeleteIsOnItsWayIsReported(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) { makePathAnewDuringDelete(t, mode, 0, false) })
}

// TestPathMadeAnewWhileDeleteIsTriedAgainIsReported does so with the second delete, after the first was lost.
func TestPathMadeAnewWhileDeleteIsTriedAgainIsReported(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) { makePathAnewDuringDelete(t, mode, 1, false) })
}

// TestPathMadeAnewAfterAChangeIsReported changes the data of the path before, which ends the watch of the path.
func TestPathMadeAnewAfterAChangeIsReported(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) { makePathAnewDuringDelete(t, mode, 0, true) })
}

func makePathAnewDuringDelete(t *testing.T, mode modifier, lost int, changed bool) {
	t.Helper()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	direct := testenv.Addr(t) + chroot
	others := newClient(t, direct)
	oldItems, newItems := epoch(0, 3), epoch(1, 3)
	putEpoch(t, others, mode, oldItems)
	proxy, connect := newProxy(t, chroot)
	deletes := curatortest.Rule{
		Ops: []string{"delete", "multi"}, Path: chroot + queuePath + "/*", Skip: lost, Count: 1,
		Action: curatortest.HoldRequest,
	}
	held := proxy.Faults().Add(deletes)
	if lost > 0 {
		deletes.Skip, deletes.Count, deletes.Action = 0, lost, curatortest.CutBefore
		proxy.Faults().Add(deletes)
	}
	got, errs := newBasket(t), newReports()
	q := start(t, built(mode(builder(t, newClient(t, connect), got.consume)).OnError(errs.add).BuildQueue()))
	must(t, held.Wait(ctx))
	if changed {
		_, err := others.SetData().ForPath(ctx, queuePath, []byte("changed"))
		must(t, err)
		isEvent := func(e curatortest.TraceEntry) bool { return e.Op == "notification" }
		testenv.Eventually(t, func() bool { return slices.ContainsFunc(proxy.Faults().Trace(), isEvent) }, "the event")
	}
	deleteQueue(t, others)
	paths := putEpoch(t, others, mode, newItems)
	held.Release()
	awaitNothing(t, direct)
	must(t, q.Close())
	times, reported := timesOf(got.await(0)), errs.paths()
	for _, item := range newItems {
		if times[item] == 0 && reported[paths[item]] == nil {
			t.Errorf("%q is gone and not reported", item)
		}
	}
}
