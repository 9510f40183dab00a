package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// pullOne returns an item that is held, of a queue that asks for no other.
func pullOne(tb testing.TB, q *queue.DistributedQueue[string]) (held queue.Item[string]) {
	tb.Helper()
	for item, err := range q.Items(testenv.Context(tb)) {
		must(tb, err)
		held = item
		break
	}
	return held
}

// TestItemThatIsDoneAfterItsLockWasLost ends the session of a puller that has an item.
func TestItemThatIsDoneAfterItsLockWasLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(t *testing.T, others *framework.Client, g *gate)
		left      []string // items, after it is done
	}{
		"is deleted if nobody has it": {func(*testing.T, *framework.Client, *gate) {}, nil},
		"stays if another has it": {func(t *testing.T, others *framework.Client, g *gate) {
			t.Helper()
			consumeAt(t, others, g)
			g.awaitReached(t)
		}, []string{"queue-0000000000"}},
		"stays if it is another": {func(t *testing.T, others *framework.Client, _ *gate) {
			t.Helper()
			deleteQueue(t, others)
			putAll(t, start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue())), "new")
		}, []string{"queue-0000000000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client, others := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
				g := newGate("a")
				putAll(t, start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue())), "a")
				item := pullOne(t, start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue())))
				expire(t, place, client)
				<-item.Context().Done()
				tt.meanwhile(t, others, g)
				defer g.open()
				if err := item.Done(ctx); !errors.Is(err, queue.ErrLockLost) {
					t.Errorf("done: %v", err)
				}
				if left := names(t, others, queuePath); !slices.Equal(left, tt.left) {
					t.Errorf("items %q, want %q", left, tt.left)
				}
			})
		})
	}
}

// consumeAt starts a consumer that stops at a gate.
func consumeAt(tb testing.TB, client *framework.Client, g *gate) {
	tb.Helper()
	start(tb, built(builder(tb, client, func(_ context.Context, item string) error {
		g.pass(item)
		return nil
	}).LockPath(lockPath).BuildQueue()))
}

// TestItemsClaimedInASessionThatHasEndedAreNotDelivered ends the session of a consumer that has locked items ahead.
// Another has them when it asks for the next.
func TestItemsClaimedInASessionThatHasEndedAreNotDelivered(t *testing.T) {
	t.Parallel()
	const n, at = 40, 20
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client, others := clientAt(t, place, chroot), clientAt(t, place, chroot)
		items := numbered(n)
		putAll(t, start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue())), items...)
		slowDown(place.Faults(), client)
		g, got, second := newGate(items[at]), newBasket(t), newBasket(t)
		defer g.open()
		q := built(builder(t, client, func(_ context.Context, item string) error {
			got.add(item)
			g.pass(item)
			return nil
		}).LockPath(lockPath).OnError(newReports().add).BuildQueue())
		must(t, q.Start())
		g.awaitReached(t)
		testenv.Eventually(t, func() bool { return len(names(t, others, lockPath)) > 1 }, "more are locked")
		session := client.Session()
		expire(t, place, client)
		<-session.Context().Done()
		must(t, client.BlockUntilConnected(testenv.Context(t)))
		goOn := make(chan struct{})
		start(t, built(builder(t, others, func(_ context.Context, item string) error {
			second.add(item)
			<-goOn
			return nil
		}).LockPath(lockPath).Concurrency(n).BuildQueue()))
		second.await(n - at)
		g.open()
		awaitSilence(t, place.Faults())
		close(goOn)
		must(t, q.Close())
		if delivered := got.await(0); len(delivered) > at+1 {
			t.Errorf("%q are delivered while another consumer works on them", delivered[at+1:])
		}
		awaitEmpty(t, others)
	})
}
