package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// TestItemsGivenBackAndClaimedAgainKeepTheirOrder has one item take so long that those claimed behind it go back.
// It ends while the server has not unlocked them: the consumer claims them again before the events of that arrive.
func TestItemsGivenBackAndClaimedAgainKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const n, slow = 60, 30
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, others, client := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		producer := start(t, built(builder(t, others, nil).LockPath(lockPath).BuildPriorityQueue(0)))
		want := numbered(n)
		for _, item := range want {
			must(t, producer.Put(ctx, item, 5))
		}
		must(t, producer.FlushPuts(ctx))
		slowDown(place.Faults(), client)
		got := newBasket(t)
		unlocks := curatortest.Rule{
			SessionID: client.SessionID(), Path: chroot + lockPath + "/*", Count: 1, Action: curatortest.HoldRequest,
		}
		start(t, built(builder(t, client, func(_ context.Context, item string) error {
			got.add(item)
			switch item {
			default:
				return nil
			case want[slow-1]:
				<-time.After(50 * time.Millisecond) // the locks of those behind it are known
				return nil
			case want[slow]:
			}
			<-time.After(50 * time.Millisecond) // what was sent before is answered
			held := place.Faults().Add(unlocks)
			time.AfterFunc(150*time.Millisecond, held.Release)
			return held.Wait(ctx)
		}).LockPath(lockPath).BuildPriorityQueue(10)))
		if diff := cmp.Diff(want, got.await(n)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		awaitEmpty(t, others)
	})
}
