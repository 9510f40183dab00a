package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

const deadLetters = "/dead"

// TestItemThatFailsTooOftenIsMovedToTheDeadLetters has two consumers fail, one after the other: deliveries are counted
// with the item.
func TestItemThatFailsTooOftenIsMovedToTheDeadLetters(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		got, errs := newBasket(t), newReports()
		broken := errors.New("broken")
		consumer := func() *queue.DistributedPriorityQueue[string] {
			q := built(builder(t, client, func(_ context.Context, item string) error {
				if item != "failing" {
					return nil
				}
				got.add(item)
				return broken
			}).LockPath(lockPath).DeadLetterPath(deadLetters).MaxDeliveries(5).OnError(errs.add).BuildPriorityQueue(1))
			must(t, q.Start())
			must(t, q.Put(ctx, "sound", 3))
			return q
		}
		first := consumer()
		must(t, first.Put(ctx, "failing", 7))
		got.await(2)
		must(t, first.Close())
		before := len(got.await(2))
		second := consumer()
		got.await(5)
		awaitEmpty(t, client)
		<-time.After(time.Second)
		must(t, second.Close())
		if n := len(got.await(5)); n != 5 || before > 3 {
			t.Errorf("delivered %d times to the first consumer, %d times in all, want 5", before, n)
		}
		if all := errs.all(); len(all) < 5 || !errors.Is(all[0], broken) {
			t.Errorf("reported are %v", all)
		}
		letters := names(t, client, deadLetters)
		if len(letters) != 1 || !strings.HasPrefix(letters[0], "queue-100000007") {
			t.Fatalf("dead letters %q", letters)
		}
		dead := newBasket(t)
		start(t, built(queue.NewBuilder(client, dead.consume, codec.Text{}, deadLetters).BuildQueue()))
		if diff := cmp.Diff([]string{"failing"}, dead.await(1)); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	})
}

func TestMaxDeliveriesNeedsALockPathAndDeadLetters(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	b := builder(t, client, newBasket(t).consume)
	for name, tt := range map[string]struct {
		b  queue.Builder[string]
		ok bool
	}{
		"neither":         {b.MaxDeliveries(3), false},
		"no lock path":    {b.DeadLetterPath(deadLetters).MaxDeliveries(3), false},
		"no dead letters": {b.LockPath(lockPath).MaxDeliveries(3), false},
		"negative":        {b.LockPath(lockPath).DeadLetterPath(deadLetters).MaxDeliveries(-1), false},
		"both":            {b.LockPath(lockPath).DeadLetterPath(deadLetters).MaxDeliveries(3), true},
		"no limit":        {b.MaxDeliveries(0), true},
	} {
		if _, err := tt.b.BuildQueue(); (err == nil) != tt.ok {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
