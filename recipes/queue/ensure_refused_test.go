package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestMissingLockPathBesideAPathThatMayNotBeCreated has an operator create the path of a queue. The program may create
// nodes below it and below the parent of the lock path, and nowhere else.
func TestMissingLockPathBesideAPathThatMayNotBeCreated(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, got := testenv.Context(t), clientAt(t, place, chroot), newBasket(t)
		create := client.Create().CreatingParentsIfNeeded()
		for _, path := range []string{"/fixed/queue", "/free"} {
			_, err := create.ForPath(ctx, path, nil)
			must(t, err)
		}
		allow(t, client, "/fixed", zk.PermRead|zk.PermAdmin)
		defer allow(t, client, "/fixed", zk.PermAll)
		q := start(t, built(queueAt(t, client, "/fixed/queue", got.consume).LockPath("/free/locks").BuildQueue()))
		putAll(t, q, "a")
		got.await(1)
	})
}

// TestDeadLettersBesideAPathThatMayNotBeCreated loses the connection before an item is moved to the dead letters.
func TestDeadLettersBesideAPathThatMayNotBeCreated(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		create := client.Create().CreatingParentsIfNeeded()
		for _, path := range []string{"/fixed/queue", "/fixed/locks", "/fixed/dead"} {
			_, err := create.ForPath(ctx, path, nil)
			must(t, err)
		}
		allow(t, client, "/fixed", zk.PermRead|zk.PermAdmin)
		defer allow(t, client, "/fixed", zk.PermAll)
		g, errs := newGate("a"), newReports()
		q := start(t, built(queueAt(t, client, "/fixed/queue", func(_ context.Context, item string) error {
			g.pass(item)
			return errors.New("broken")
		}).LockPath("/fixed/locks").DeadLetterPath("/fixed/dead").MaxDeliveries(1).OnError(errs.add).BuildQueue()))
		putAll(t, q, "a")
		g.awaitReached(t)
		place.Faults().Cut(client.SessionID())
		g.open()
		testenv.Eventually(t, func() bool { return len(names(t, client, "/fixed/dead")) == 1 }, "it is moved")
		if all := errs.all(); len(all) != 1 {
			t.Errorf("reported are %v", all)
		}
	})
}

func queueAt(tb testing.TB, client *framework.Client, path string, c queue.Consumer[string]) queue.Builder[string] {
	tb.Helper()
	return queue.NewBuilder(client, c, codec.Text{}, path).
		OnError(func(_ context.Context, err error) { tb.Errorf("in the background: %v", err) })
}
