package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// In Java: TestDistributedPriorityQueue.testBasic, testMultiItem.
func TestItemsAreConsumedByPriority(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		producer := start(t, built(mode(builder(t, client, nil)).BuildPriorityQueue(0)))
		priorities := []int{math.MinInt32, -10, -1, 0, 1, 10, 5000, math.MaxInt32}
		var want []string
		for _, p := range priorities {
			want = append(want, fmt.Sprint(p, " first"), fmt.Sprint(p, " second"))
		}
		for _, i := range rand.Perm(len(priorities)) {
			p := priorities[i]
			must(t, producer.PutMulti(ctx, p, fmt.Sprint(p, " first")))
			must(t, producer.PutMulti(ctx, p, fmt.Sprint(p, " second")))
		}
		must(t, producer.FlushPuts(ctx))
		got := newBasket(t)
		start(t, built(mode(builder(t, client, got.consume)).BuildPriorityQueue(0)))
		if diff := cmp.Diff(want, got.await(len(want))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, p := range []int{math.MinInt32 - 1, math.MaxInt32 + 1} {
			if err := producer.Put(ctx, "a", p); err == nil {
				t.Errorf("priority %d", p)
			}
		}
	})
}

// TestNewcomerGoesBeforeTheRest puts an urgent item while the first of many is being consumed. In Java:
// TestDistributedPriorityQueue.testMinItemsBeforeRefresh, testSortingWhileTaking.
func TestNewcomerGoesBeforeTheRest(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		for _, refresh := range []int{0, 1, 4, 10} {
			ctx, connect := testenv.Context(t), testenv.ConnectString(t)
			client := newClient(t, connect)
			producer := start(t, built(mode(builder(t, client, nil)).BuildPriorityQueue(0)))
			for i := range 30 {
				must(t, producer.Put(ctx, fmt.Sprint(i), 5))
			}
			must(t, producer.FlushPuts(ctx))
			got := newBasket(t)
			var first atomic.Bool
			q := start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				if first.CompareAndSwap(false, true) {
					if err := producer.Put(ctx, "urgent", 1); err != nil {
						t.Error(err)
					}
					if err := producer.FlushPuts(ctx); err != nil {
						t.Error(err)
					}
				}
				got.add(item)
				return nil
			})).BuildPriorityQueue(refresh)))
			items := got.await(31)
			if at := slices.Index(items, "urgent"); at < 1 || at > max(refresh, 1) {
				t.Errorf("refresh after %d: the urgent one comes after %d others", refresh, at)
			}
			items = slices.DeleteFunc(items, func(s string) bool { return s == "urgent" })
			for i, item := range items {
				if item != fmt.Sprint(i) {
					t.Errorf("refresh after %d: item %s is number %d", refresh, item, i)
				}
			}
			must(t, q.Close())
		}
	})
}

// In Java: TestDistributedDelayQueue.testLateAddition, testBasic, testSorting.
func TestItemsAreConsumedWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			ctx, client := testenv.Context(t), clientAt(t, place, chroot)
			due := make(map[string]time.Time)
			got := newBasket(t)
			now := time.Now()
			for i := range 20 {
				due[fmt.Sprint(i)] = now.Add(time.Duration(300+10*i) * time.Millisecond).Truncate(time.Millisecond)
			}
			due["past"], due["never set"] = now.Add(-time.Hour), time.Time{}
			q := start(t, built(mode(builder(t, client, func(ctx context.Context, item string) error {
				late := time.Since(due[item])
				if late < 0 {
					t.Errorf("%s is consumed %v before it is due", item, -late)
				}
				if due[item].After(now) && late > testenv.InTime(holdBackLimit) {
					t.Errorf("%s is consumed %v late", item, late)
				}
				if info := queue.InfoOf(ctx); item != "never set" && !info.Due.Equal(due[item].Truncate(time.Millisecond)) {
					t.Errorf("%s is due at %v, want %v", item, info.Due, due[item])
				}
				got.add(item)
				return nil
			})).BuildDelayQueue()))
			names := []string{"never set", "past"}
			for i := range 20 {
				names = append(names, fmt.Sprint(i))
			}
			for _, i := range rand.Perm(len(names)) {
				must(t, q.PutMulti(ctx, due[names[i]], names[i]))
			}
			items := got.await(len(names))
			slices.Sort(items[:2]) // consumed as they were put
			slices.Sort(names[:2])
			if diff := cmp.Diff(names, items); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			awaitEmpty(t, client)
		})
	})
}

// In Java: TestDistributedDelayQueue.testLateAddition.
func TestLateAdditionThatIsDueEarlierComesFirst(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		soon := 50 * time.Millisecond
		if testenv.Real() { // where a busy machine takes its time between the two puts
			soon = 5 * time.Second
		}
		got := newBasket(t)
		q := start(t, built(builder(t, client, got.consume).BuildDelayQueue()))
		must(t, q.Put(ctx, "in an hour", time.Now().Add(time.Hour)))
		must(t, q.FlushPuts(ctx))
		must(t, q.PutMulti(ctx, time.Now().Add(soon), "soon"))
		must(t, q.Put(ctx, "now", time.Now()))
		if diff := cmp.Diff([]string{"now", "soon"}, got.await(2)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if left := names(t, client, queuePath); len(left) != 1 {
			t.Errorf("left: %q", left)
		}
	})
}

// In Java: TestDistributedIdQueue.testDeleting, testOrdering, and what it cannot: ids with / and |.
func TestItemIsRemovedByItsID(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		q := start(t, built(mode(builder(t, client, nil)).BuildIDQueue()))
		if n, err := q.Remove(ctx, "nothing there yet"); n != 0 || err != nil {
			t.Errorf("removed %d, %v", n, err)
		}
		for i, id := range []string{"z", "a/b|c", "m", "a", "m"} {
			must(t, q.Put(ctx, fmt.Sprint(i, " ", id), id))
		}
		must(t, q.PutMulti(ctx, "last", "5 last"))
		must(t, q.FlushPuts(ctx))
		if err := q.Put(ctx, "a", "\x00"); err == nil {
			t.Error("an id that no path can have")
		}
		for id, want := range map[string]int{"a/b|c": 1, "m": 2, "nobody": 0, "": 0} {
			if n, err := q.Remove(ctx, id); n != want || err != nil {
				t.Errorf("removed %d of %q, %v, want %d", n, id, err, want)
			}
		}
		next, stop := pullAll(ctx, q)
		defer stop()
		got := []string{next(t), next(t), next(t)}
		if diff := cmp.Diff([]string{"0 z", "3 a", "5 last"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		awaitNothing(t, connect)
	})
}

// In Java: TestDistributedIdQueue.testDeletingWithLock.
func TestItemThatIsBeingConsumedIsNotRemoved(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	q := start(t, built(builder(t, newClient(t, connect), func(context.Context, string) error {
		close(began)
		<-goOn
		return nil
	}).LockPath(lockPath).BuildIDQueue()))
	must(t, q.Put(ctx, "a", "x"))
	<-began
	if n, err := q.Remove(ctx, "x"); n != 0 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	close(goOn)
	awaitNothing(t, connect)
}

// TestItemPutBackKeepsItsPlaceAmongKinds has the consumer fail once for each item; Java loses priority and delay then.
func TestItemPutBackKeepsPriorityDelayAndID(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	infos := make(chan queue.Info, 10)
	seen := map[string]bool{}
	consume := func(ctx context.Context, item string) error {
		infos <- queue.InfoOf(ctx)
		if !seen[item] {
			seen[item] = true
			return errors.New("once more")
		}
		return nil
	}
	b := builder(t, client, consume).LockPath(lockPath).OnError(newFailures().notify)
	due := time.Now().Add(20 * time.Millisecond).Truncate(time.Millisecond)
	check := func(kind string, same func(a, b queue.Info) bool) {
		first, second := <-infos, <-infos
		if !same(first, second) || first.Path == second.Path || len(first.Path) != len(second.Path) {
			t.Errorf("%s: %+v, then %+v", kind, first, second)
		}
		awaitNothing(t, connect)
	}
	priority := start(t, built(b.BuildPriorityQueue(0)))
	must(t, priority.Put(ctx, "p", -3))
	check("priority", func(a, b queue.Info) bool { return a.Priority == -3 && b.Priority == -3 })
	must(t, priority.Close())
	delay := start(t, built(b.BuildDelayQueue()))
	must(t, delay.Put(ctx, "d", due))
	check("delay", func(a, b queue.Info) bool { return a.Due.Equal(due) && b.Due.Equal(due) })
	must(t, delay.Close())
	ids := start(t, built(b.BuildIDQueue()))
	must(t, ids.Put(ctx, "i", "x"))
	check("id", func(a, b queue.Info) bool { return a.ID == "x" && b.ID == "x" })
	must(t, ids.Close())
	// In Java: TestDistributedQueue.testCuratorBug56 (CURATOR-56), names that grow with each time.
	plain := start(t, built(b.BuildQueue()))
	must(t, plain.Put(ctx, "q"))
	check("plain", func(a, _ queue.Info) bool { return strings.HasPrefix(a.Path, queuePath+"/queue-") })
}
