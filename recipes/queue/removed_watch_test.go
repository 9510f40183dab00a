package queue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// removeWatches removes all watches of a queue, as another part of the program can. It returns when the client does
// nothing more.
func removeWatches(t *testing.T, place testenv.Place, client *framework.Client) {
	t.Helper()
	awaitSilence(t, place.Faults())
	ctx, remove := testenv.Context(t), client.Watches().RemoveAll()
	must(t, remove.ForPath(ctx, queuePath))
	must(t, remove.Quietly().ForPath(ctx, lockPath)) // there may be no locks
	awaitSilence(t, place.Faults())
}

func TestQueueWhoseWatchesAreRemovedGoesOn(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			got, client := newBasket(t), clientAt(t, place, chroot)
			start(t, built(mode(builder(t, client, got.consume)).BuildQueue()))
			producer := start(t, built(mode(builder(t, clientAt(t, place, chroot), nil)).BuildQueue()))
			items := numbered(5)
			for i, item := range items {
				removeWatches(t, place, client)
				putAll(t, producer, item)
				if diff := cmp.Diff(items[:i+1], got.await(i+1)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	})
}

func TestSimpleQueueWhoseWatchesAreRemovedTakesTheNextElement(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		ctx, q, other := testenv.Context(t), simple(client), simple(clientAt(t, place, chroot))
		got := make(chan string, 1)
		go func() {
			data, err := q.Take(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- string(data)
		}()
		removeWatches(t, place, client)
		offer(t, other, "a")
		if g := <-got; g != "a" {
			t.Errorf("got %q", g)
		}
	})
}

func TestBlockedPutWhoseWatchIsRemovedGoesOn(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		fillUp(t, other, 3)
		q := start(t, built(builder(t, client, nil).MaxItems(3).BuildQueue()))
		put := make(chan error, 1)
		go func() { put <- q.Put(ctx, "a") }()
		awaitWatch(t, place.Faults(), "addWatch")
		removeWatches(t, place, client)
		select {
		case err := <-put:
			t.Fatalf("put to a full queue: %v", err)
		case <-time.After(time.Second):
		}
		removeFirst(t, other, 1)
		must(t, <-put)
	})
}
