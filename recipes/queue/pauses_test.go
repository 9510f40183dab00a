package queue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestPausesTakeNoGoroutines has many items wait until they are put back, or until they may be settled, and counts the
// goroutines now and then. No other test runs beside it.
func TestPausesTakeNoGoroutines(t *testing.T) {
	if testenv.Real() {
		t.Skip("in real time a pause is over before all items are tried again")
	}
	const n, most = 1000, 100
	for name, tt := range map[string]struct {
		err    error // of the consumer
		perms  int32 // of the queue
		window int
	}{
		"put back":                  {errors.New("broken"), zk.PermAll, n},
		"refused":                   {nil, zk.PermAll &^ zk.PermDelete, n},
		"put back, behind refusals": {errors.New("broken"), zk.PermAll &^ zk.PermDelete, 10},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				client, got := clientAt(t, place, chroot), newBasket(t)
				producer := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue()))
				putAll(t, producer, numbered(n)...)
				allow(t, client, queuePath, tt.perms)
				before := runtime.NumGoroutine()
				q := built(builder(t, client, func(_ context.Context, item string) error {
					got.add(item)
					return tt.err
				}).LockPath(lockPath).PutWindow(tt.window).OnError(newReports().add).BuildQueue())
				must(t, q.Start())
				got.await(n)
				var counts []int
				for range 100 {
					<-time.After(13 * time.Millisecond)
					counts = append(counts, runtime.NumGoroutine())
				}
				slices.Sort(counts)
				if usual := counts[len(counts)*3/4]; usual > before+most { // in between they are tried again
					t.Errorf("%d items that wait take %d goroutines", n, usual-before)
				}
				allow(t, client, queuePath, zk.PermAll)
				must(t, q.Close())
				if locks := names(t, client, lockPath); len(locks) > 0 {
					t.Errorf("%d locks are left", len(locks))
				}
			})
		})
	}
}

// TestPausedSettlementEndsWithItsSession has an item be done whose settlement is refused.
func TestPausedSettlementEndsWithItsSession(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, others, client := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		putAll(t, start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue())), "a")
		q := start(t, built(builder(t, client, nil).LockPath(lockPath).OnError(newReports().add).BuildQueue()))
		item := pullOne(t, q)
		allow(t, others, queuePath, zk.PermAll&^zk.PermDelete)
		done := make(chan error, 1)
		go func() { done <- item.Done(ctx) }()
		<-time.After(11 * time.Second) // the pause is as long as it can be
		expire(t, place, client)
		select {
		case err := <-done:
			if !errors.Is(err, queue.ErrLockLost) {
				t.Errorf("done: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the settlement waits for the end of its pause")
		}
		allow(t, others, queuePath, zk.PermAll)
	})
}

// payload is an item that is known by its address.
type payload struct{ Text string }

// TestItemsAreForgottenAfterTheirPauses counts the values of failed items that are still in memory.
func TestItemsAreForgottenAfterTheirPauses(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		const n = 20
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		seen := make(chan weak.Pointer[payload], 100*n)
		q := start(t, built(queue.NewBuilder(client, func(_ context.Context, item *payload) error {
			seen <- weak.Make(item)
			return errors.New("broken")
		}, codec.JSON[*payload]{}, queuePath).LockPath(lockPath).OnError(newReports().add).BuildQueue()))
		for _, item := range numbered(n) {
			must(t, q.Put(ctx, &payload{item}))
		}
		must(t, q.FlushPuts(ctx))
		var all []weak.Pointer[payload]
		for range 5 * n {
			all = append(all, <-seen)
		}
		runtime.GC()
		left := 0
		for _, item := range all[:n] {
			if item.Value() != nil {
				left++
			}
		}
		if left > n/2 { // a goroutine may hold some
			t.Errorf("%d of %d items are left", left, n)
		}
	})
}
