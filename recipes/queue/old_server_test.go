package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// A server before 3.6 has no persistent watches: a queue is listed after each change.
func TestItemsArriveFromAnOldServer(t *testing.T) {
	t.Parallel()
	type put = func(ctx context.Context, item string) error
	kinds := map[string]func(tb testing.TB, b queue.Builder[string]) put{
		"queue": func(tb testing.TB, b queue.Builder[string]) put {
			tb.Helper()
			return start(tb, built(b.BuildQueue())).Put
		},
		"priority queue": func(tb testing.TB, b queue.Builder[string]) put {
			tb.Helper()
			q := start(tb, built(b.BuildPriorityQueue(0)))
			return func(ctx context.Context, item string) error { return q.Put(ctx, item, 1) }
		},
		"delay queue": func(tb testing.TB, b queue.Builder[string]) put {
			tb.Helper()
			q := start(tb, built(b.BuildDelayQueue()))
			return func(ctx context.Context, item string) error { return q.Put(ctx, item, time.Now().Add(time.Second)) }
		},
	}
	for name, putTo := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				onAnOldServer(t, func(t *testing.T, place testenv.Place, chroot string, items []string) {
					got := newBasket(t)
					put := putTo(t, mode(builder(t, clientAt(t, place, chroot), got.consume)))
					for i, item := range items {
						must(t, put(testenv.Context(t), item))
						if diff := cmp.Diff(items[:i+1], got.await(i+1)); diff != "" {
							t.Fatalf("(-want +got):\n%s", diff)
						}
						awaitSilence(t, place.Faults())
					}
				})
			})
		})
	}
}

func onAnOldServer(t *testing.T, fn func(t *testing.T, place testenv.Place, chroot string, items []string)) {
	t.Helper()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
		})
		fn(t, place, chroot, numbered(5))
	})
}

// TestItemUnlockedOnAnOldServerIsConsumed has another consumer lock an item and give it back.
func TestItemUnlockedOnAnOldServerIsConsumed(t *testing.T) {
	t.Parallel()
	onAnOldServer(t, func(t *testing.T, place testenv.Place, chroot string, items []string) {
		ctx, others := testenv.Context(t), clientAt(t, place, chroot)
		putAll(t, start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue())), items[0])
		lock := lockPath + "/" + names(t, others, queuePath)[0]
		_, err := others.Create().WithMode(builders.Ephemeral).ForPath(ctx, lock, nil)
		must(t, err)
		got := newBasket(t)
		start(t, built(builder(t, clientAt(t, place, chroot), got.consume).LockPath(lockPath).BuildQueue()))
		awaitSilence(t, place.Faults())
		must(t, others.Delete().ForPath(ctx, lock))
		got.awaitSoon(1)
	})
}

// TestServerThatRefusesTheNextWatchIsListed has a client connect to an old server after a newer one.
func TestServerThatRefusesTheNextWatchIsListed(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client, got := clientAt(t, place, chroot), newBasket(t)
			start(t, built(mode(builder(t, client, got.consume)).BuildQueue()))
			producer := start(t, built(mode(builder(t, clientAt(t, place, chroot), nil)).BuildQueue()))
			putAll(t, producer, "first")
			got.await(1)
			awaitSilence(t, place.Faults())
			place.Faults().Add(curatortest.Rule{
				Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
			})
			expire(t, place, client)
			awaitSilence(t, place.Faults())
			putAll(t, producer, "second")
			got.awaitSoon(2)
		})
	})
}

// TestQueueWithOneOfItsWatchesIsListed has the server refuse to watch the items, and not the locks.
func TestQueueWithOneOfItsWatchesIsListed(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Path: chroot + queuePath, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		client, got := clientAt(t, place, chroot), newBasket(t)
		q := start(t, built(builder(t, client, got.consume).LockPath(lockPath).BuildQueue()))
		awaitSilence(t, place.Faults())
		putAll(t, q, "a")
		got.awaitSoon(1)
	})
}
