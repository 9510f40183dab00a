package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// modifier completes a builder.
type modifier func(queue.Builder[string]) queue.Builder[string]

// forEachMode runs a test without and with a lock path.
func forEachMode(t *testing.T, test func(t *testing.T, mode modifier)) {
	t.Helper()
	t.Run("at most once", func(t *testing.T) {
		t.Parallel()
		test(t, func(b queue.Builder[string]) queue.Builder[string] { return b })
	})
	t.Run("at least once", func(t *testing.T) {
		t.Parallel()
		test(t, func(b queue.Builder[string]) queue.Builder[string] { return b.LockPath(lockPath) })
	})
}

func TestItemsAreConsumedInTheOrderInWhichTheyWerePut(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		got := newBasket(t)
		q := start(t, built(mode(builder(t, client, got.consume)).BuildQueue()))
		want := numbered(500)
		for _, item := range want {
			must(t, q.Put(ctx, item))
		}
		must(t, q.FlushPuts(ctx))
		if diff := cmp.Diff(want, got.await(len(want))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		awaitNothing(t, connect)
	})
}
