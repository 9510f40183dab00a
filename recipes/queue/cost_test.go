package queue_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// asked returns how often each operation was asked for. The first look at a queue, and that it is empty in the end, are
// some listings; how many depends on when the watch fires. The watches of the path, of the items and of the locks are
// set once each.
func asked(faults *curatortest.Faults, listings int) map[string]int {
	n := make(map[string]int)
	for _, e := range faults.Trace() {
		if !e.Reply && e.Xid > 0 {
			n[e.Op]++
		}
	}
	if n["getChildren2"] <= listings {
		delete(n, "getChildren2")
	}
	for op, once := range map[string]int{"exists": 1, "addWatch": 2} {
		if n[op] <= once {
			delete(n, op)
		}
	}
	return n
}

// withoutRemovals leaves out what removes n items without locks, after a look at how often that was: several go
// together, how many depends on how fast they are consumed.
func withoutRemovals(t *testing.T, n map[string]int, items int) map[string]int {
	if n["create2"] > 0 {
		return n // with locks, which go with their items
	}
	if removals := n["delete"] + n["multi"]; removals > items/2 && !testenv.Real() { // where time is real, all may be slow
		t.Errorf("%d removals of %d items", removals, items)
	}
	delete(n, "delete")
	delete(n, "multi")
	return n
}

// slowDownInVirtualTime has each answer to a client in virtual time come when the client waits for it.
func slowDownInVirtualTime(faults *curatortest.Faults, client *framework.Client) {
	if !testenv.Real() {
		slowDown(faults, client)
	}
}

// TestCostOfAnItemDoesNotGrowWithTheQueue counts the requests of a consumer alone: the queue is listed once for all
// that is in it.
func TestCostOfAnItemDoesNotGrowWithTheQueue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode string
		with modifier
		want func(n int) map[string]int
	}{
		{
			"at most once",
			func(b queue.Builder[string]) queue.Builder[string] { return b },
			func(n int) map[string]int { return map[string]int{"getData": n} },
		},
		{
			"at least once",
			func(b queue.Builder[string]) queue.Builder[string] { return b.LockPath(lockPath) },
			func(n int) map[string]int { return map[string]int{"create2": n, "getData": n, "multi": n} },
		},
	}
	for _, tt := range tests {
		for _, n := range []int{10, 1000} {
			t.Run(fmt.Sprintf("%s, %d items", tt.mode, n), func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					ctx, idle := testenv.Context(t), clientAt(t, place, chroot)
					producer := start(t, built(tt.with(builder(t, idle, nil)).BuildQueue()))
					putAll(t, producer, numbered(n)...)
					must(t, producer.FlushPuts(ctx))
					client, got := clientAt(t, place, chroot), newBasket(t)
					slowDownInVirtualTime(place.Faults(), client)
					awaitSilence(t, place.Faults())
					place.Faults().ResetTrace()
					start(t, built(tt.with(builder(t, client, got.consume)).BuildQueue()))
					got.await(n)
					awaitSilence(t, place.Faults())
					requests := withoutRemovals(t, asked(place.Faults(), 20), n)
					for op, count := range requests { // a machine that stalls has items given back to others
						if testenv.Real() && count > n && count <= n+n/10 {
							requests[op] = n
						}
					}
					if diff := cmp.Diff(tt.want(n), requests); diff != "" {
						t.Errorf("requests (-want +got):\n%s", diff)
					}
					awaitEmpty(t, client)
				})
			})
		}
	}
}

// TestListThatOtherConsumersHaveUsedUpIsNotFollowed counts what a consumer asks for that another has overtaken.
func TestListThatOtherConsumersHaveUsedUpIsNotFollowed(t *testing.T) {
	t.Parallel()
	const n = 300
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, chroot := testenv.Context(t), testenv.Chroot(t)
		direct := testenv.Addr(t) + chroot
		producer := start(t, built(mode(builder(t, newClient(t, direct), nil)).BuildQueue()))
		for _, item := range numbered(n) {
			must(t, producer.Put(ctx, item))
		}
		must(t, producer.FlushPuts(ctx))
		proxy, connect := newProxy(t, chroot)
		began, goOn, got := make(chan struct{}), make(chan struct{}), newBasket(t)
		start(t, built(mode(builder(t, newClient(t, connect), func(ctx context.Context, item string) error {
			if item == numbered(n)[0] {
				close(began)
				<-goOn
			}
			return got.consume(ctx, item)
		})).BuildQueue()))
		<-began
		others := newBasket(t)
		other := built(mode(builder(t, newClient(t, direct), others.consume)).BuildQueue())
		must(t, other.Start())
		others.await(n - 1)
		must(t, other.Close())
		proxy.Faults().ResetTrace()
		must(t, producer.Put(ctx, "last"))
		must(t, producer.FlushPuts(ctx))
		close(goOn)
		if items := got.await(2); items[1] != "last" {
			t.Errorf("got %q", items)
		}
		if asked := requests(proxy.Faults()); asked["getData"] > n/3 || asked["create2"] > n/3 {
			t.Errorf("requests %v", asked)
		}
	})
}

// TestCostOfAPriority counts the requests for items by priority: newcomers are found without a request.
func TestCostOfAPriority(t *testing.T) {
	t.Parallel()
	const n = 100
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, others := testenv.Context(t), clientAt(t, place, chroot)
		producer := start(t, built(builder(t, others, nil).BuildPriorityQueue(0)))
		for i, item := range numbered(n) {
			must(t, producer.Put(ctx, item, i))
		}
		must(t, producer.FlushPuts(ctx))
		client, got := clientAt(t, place, chroot), newBasket(t)
		slowDownInVirtualTime(place.Faults(), client)
		awaitSilence(t, place.Faults())
		place.Faults().ResetTrace()
		start(t, built(builder(t, client, got.consume).BuildPriorityQueue(10)))
		got.await(n)
		want := map[string]int{"getData": n}
		if diff := cmp.Diff(want, withoutRemovals(t, asked(place.Faults(), 20), n)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}
