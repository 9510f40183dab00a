package queue_test

import (
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
