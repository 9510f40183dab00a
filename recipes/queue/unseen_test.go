package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestPathChangedAndMadeAnewUnderConsumerLosesNothing changes the data of the path of a queue, which uses up a watch,
// before it deletes it.
func TestPathChangedAndMadeAnewUnderConsumerLosesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ isNoticed bool }{
		"under an item that was claimed before the change": {false},
		"under an item that was claimed after the change":  {true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, others, client := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
				locked := func(b queue.Builder[string]) queue.Builder[string] { return b.LockPath(lockPath) }
				items := epoch(0, 60)
				putEpoch(t, others, locked, items)
				g, next, got, errs := newGate(items[5]), newGate(items[50]), newBasket(t), newReports()
				defer g.open()
				defer next.open()
				start(t, built(builder(t, client, func(_ context.Context, item string) error {
					g.pass(item)
					next.pass(item)
					got.add(item)
					return nil
				}).LockPath(lockPath).OnError(errs.add).BuildQueue()))
				g.awaitReached(t)
				_, err := others.SetData().ForPath(ctx, queuePath, []byte("changed"))
				must(t, err)
				<-time.After(200 * time.Millisecond)
				if tt.isNoticed {
					g.open() // the next items are claimed after the change
					next.awaitReached(t)
					<-time.After(200 * time.Millisecond) // the items before it are settled
				}
				deleteQueue(t, others)
				newItems := epoch(1, 60)
				putEpoch(t, others, locked, newItems)
				g.open()
				next.open()
				awaitEmpty(t, others)
				times := timesOf(got.await(0))
				for _, item := range newItems {
					if times[item] == 0 {
						t.Errorf("%q is gone; reported are %v", item, errs.all())
					}
				}
			})
		})
	}
}
