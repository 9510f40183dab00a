package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

// TestItemUnlockedBeforeAListIsClaimedAgain has another lock an item that a consumer is about to lock, and unlock it
// before the consumer, which has missed what happened, lists the queue.
func TestItemUnlockedBeforeAListIsClaimedAgain(t *testing.T) {
	t.Parallel()
	const n, at, taken = 30, 20, 23
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, others, client := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		producer := start(t, built(builder(t, others, nil).LockPath(lockPath).BuildDelayQueue()))
		due := time.Now().Add(-time.Hour)
		for i := range n {
			must(t, producer.Put(ctx, fmt.Sprint(i), due.Add(time.Duration(i)*time.Second)))
		}
		must(t, producer.FlushPuts(ctx))
		var name string
		for _, item := range names(t, others, queuePath) {
			if strings.HasSuffix(item, fmt.Sprint(taken)) {
				name = item
			}
		}
		slowDown(place.Faults(), client)
		held := place.Faults().Add(curatortest.Rule{
			SessionID: client.SessionID(), Ops: []string{"create2"}, Path: chroot + lockPath + "/" + name,
			Count: 1, Action: curatortest.HoldRequest,
		})
		g, got := newGate(fmt.Sprint(at)), newBasket(t)
		defer g.open()
		start(t, built(builder(t, client, func(_ context.Context, item string) error {
			g.pass(item)
			got.add(item)
			return nil
		}).LockPath(lockPath).BuildDelayQueue()))
		g.awaitReached(t)
		must(t, held.Wait(ctx))
		lock := lockPath + "/" + name
		_, err := others.Create().WithMode(builders.Ephemeral).ForPath(ctx, lock, []byte("another"))
		must(t, err)
		held.Release()
		<-time.After(30 * time.Millisecond) // the consumer's lock is refused, which it finds out later
		must(t, others.Delete().ForPath(ctx, lock))
		_, err = others.SetData().ForPath(ctx, queuePath, []byte("changed"))
		must(t, err)
		<-time.After(10 * time.Millisecond)
		g.open()
		got.awaitSoon(n)
		awaitEmpty(t, others)
	})
}
