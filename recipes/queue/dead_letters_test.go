package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
)

// TestRefusedDeadLettersHoldBackNoOtherItem has more items that cannot be read than settlements may be under way, where
// nothing may be put into the dead letters for a while.
func TestRefusedDeadLettersHoldBackNoOtherItem(t *testing.T) {
	t.Parallel()
	const window, corrupt = 2, 5
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			ctx, client := testenv.Context(t), clientAt(t, place, chroot)
			_, err := client.Create().WithACL(zk.WorldACL(zk.PermAll&^zk.PermCreate)...).ForPath(ctx, "/dead", nil)
			must(t, err)
			put := client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
			for range corrupt {
				_, err := put.ForPath(ctx, queuePath+"/queue-", []byte("corrupt"))
				must(t, err)
			}
			got, errs := newBasket(t), newReports()
			q := start(t, built(mode(builder(t, client, got.consume)).OnError(errs.add).
				DeadLetterPath("/dead").PutWindow(window).BuildQueue()))
			putAll(t, q, "readable")
			got.await(1)
			<-time.After(5 * time.Second) // they are tried again meanwhile
			if n := len(errs.all()); n != 2*corrupt {
				t.Errorf("%d reports about %d items that cannot be read and not be moved", n, corrupt)
			}
			allow(t, client, "/dead", zk.PermAll)
			awaitEmpty(t, client)
			if n := len(names(t, client, "/dead")); n != corrupt {
				t.Errorf("%d dead letters, want %d", n, corrupt)
			}
		})
	})
}

// TestRefusedDeadLettersOfFailedItemsHoldBackNoOtherItem is the same for items that fail too often.
func TestRefusedDeadLettersOfFailedItemsHoldBackNoOtherItem(t *testing.T) {
	t.Parallel()
	const window, failing = 2, 5
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		_, err := client.Create().WithACL(zk.WorldACL(zk.PermAll&^zk.PermCreate)...).ForPath(ctx, deadPath, nil)
		must(t, err)
		got, errs := newBasket(t), newReports()
		q := start(t, built(builder(t, client, func(_ context.Context, item string) error {
			got.add(item)
			if item == "sound" {
				return nil
			}
			return errors.New("broken")
		}).LockPath(lockPath).DeadLetterPath(deadPath).MaxDeliveries(1).OnError(errs.add).PutWindow(window).BuildQueue()))
		putAll(t, q, numbered(failing)...)
		putAll(t, q, "sound")
		got.await(failing + 1)
		testenv.Eventually(t, func() bool { return len(names(t, client, queuePath)) == failing }, "what is sound is settled")
		<-time.After(5 * time.Second) // the others are tried again meanwhile
		if n := len(errs.all()); n != 2*failing {
			t.Errorf("%d reports about %d items that fail and cannot be moved", n, failing)
		}
		if n := len(got.await(0)); n != failing+1 {
			t.Errorf("%d deliveries of %d items", n, failing+1)
		}
		allow(t, client, deadPath, zk.PermAll)
		awaitEmpty(t, client)
		if n := len(names(t, client, deadPath)); n != failing {
			t.Errorf("%d dead letters, want %d", n, failing)
		}
	})
}
