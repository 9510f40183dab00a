package queue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/testenv"
)

// TestPausesTakeNoGoroutines has many items wait until they are put back, or until they may be settled, and counts the
// goroutines now and then. No other test runs beside it.
func TestPausesTakeNoGoroutines(t *testing.T) {
	if testenv.Real() {
		t.Skip("in real time a pause is over before all items are tried again")
	}
	const n, most = 1000, 100
	for name, tt := range map[string]struct {
		err   error // of the consumer
		perms int32 // of the queue
	}{
		"put back": {errors.New("broken"), zk.PermAll},
		"refused":  {nil, zk.PermAll &^ zk.PermDelete},
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
				}).LockPath(lockPath).PutWindow(n).OnError(newReports().add).BuildQueue())
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
