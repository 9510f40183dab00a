package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestConsumerWithLostRepliesKeepsItsPromise cuts the connection of a consumer before and after each of its requests in
// turn.
func TestConsumerWithLostRepliesKeepsItsPromise(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
			return consumeWithCut(t, mode, action, k)
		})
	})
}

func consumeWithCut(t *testing.T, mode modifier, action curatortest.Action, k int) (hit bool) {
	t.Helper()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	direct := testenv.Addr(t) + chroot
	producer := start(t, built(mode(builder(t, newClient(t, direct), nil)).BuildQueue()))
	want := numbered(5)
	for _, item := range want {
		must(t, producer.Put(ctx, item))
	}
	must(t, producer.FlushPuts(ctx))
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	must(t, client.BlockUntilConnected(ctx))
	injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
	got, failed := newBasket(t), newFailures()
	q := built(mode(builder(t, client, got.consume)).OnError(failed.notify).BuildQueue())
	atLeastOnce := mode(builder(t, client, nil)).ErrorMode(queue.RequeueOnError)
	_, err := atLeastOnce.BuildQueue()
	lossless := err == nil
	must(t, q.Start())
	awaitNothing(t, direct)
	must(t, q.Close())
	awaitNothing(t, direct)
	times := map[string]int{}
	for _, item := range got.await(0) {
		times[item]++
	}
	unknown := 0
	for len(failed.errs) > 0 {
		if errors.Is(<-failed.errs, queue.ErrUncertain) {
			unknown++
		}
	}
	lost := 0
	for _, item := range want {
		switch n := times[item]; {
		case n == 0 && lossless:
			t.Errorf("%v of request %d: %q is lost", action, k, item)
		case n == 0:
			lost++
		case n > 1 && !lossless:
			t.Errorf("%v of request %d: %q is consumed %d times", action, k, item, n)
		}
	}
	if lost != unknown && !lossless {
		t.Errorf("%v of request %d: %d lost, %d reported", action, k, lost, unknown)
	}
	return injection.Hits() > 0
}

// TestPullingWithLostReplies is the same for pulled items.
func TestPullingWithLostReplies(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
			return pullWithCut(t, mode, action, k)
		})
	})
}

func pullWithCut(t *testing.T, mode modifier, action curatortest.Action, k int) (hit bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	chroot := testenv.Chroot(t)
	direct := testenv.Addr(t) + chroot
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	failed := newFailures()
	q := built(mode(builder(t, client, nil)).OnError(failed.notify).BuildQueue())
	must(t, q.Start())
	must(t, q.PutMulti(ctx, "a", "b"))
	must(t, q.Put(ctx, "c"))
	must(t, q.FlushPuts(ctx))
	injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
	go func() {
		awaitNothing(t, direct)
		cancel()
	}()
	seen := map[string]int{}
	for item, err := range q.Items(ctx) {
		if err != nil {
			break
		}
		seen[item.Value]++
		if err := item.Done(testenv.Context(t)); err != nil {
			t.Errorf("%v of request %d: done: %v", action, k, err)
		}
	}
	must(t, q.Close())
	if _, err := mode(builder(t, client, nil)).ErrorMode(queue.RequeueOnError).BuildQueue(); err == nil { // it has locks
		awaitNothing(t, direct)
	}
	// Without locks an item that is claimed is out of the queue. If it is not delivered it is put back.
	reader := newClient(t, direct)
	for _, item := range []string{"a", "b", "c"} {
		n := 0
		testenv.Eventually(t, func() bool {
			n = seen[item]
			for _, left := range itemsOf(t, reader) {
				if left == item {
					n++
				}
			}
			return n > 0 || len(failed.errs) > 0
		}, "item "+item)
		if n != 1 && len(failed.errs) == 0 {
			t.Errorf("%v of request %d: %q comes %d times", action, k, item, n)
		}
	}
	return injection.Hits() > 0
}
