package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// An outer lock is lost whose client an inner lock has, or its hold is released first, while the session goes on. The
// nodes of the inner one must go all the same: no other contender would ever get it.
func TestLockOfFencedClientFenceGoneLeavesNothing(t *testing.T) {
	ends := map[string]func(t *testing.T, client *framework.Client, outer *locks.Hold){
		"lost":     func(t *testing.T, client *framework.Client, outer *locks.Hold) { deleteNode(t, client, outer.Path()) },
		"released": func(t *testing.T, _ *framework.Client, outer *locks.Hold) { release(t, outer) },
	}
	for name, end := range ends {
		for _, waits := range []bool{false, true} {
			state := map[bool]string{false: "held", true: "waited for"}[waits]
			t.Run(name+", "+state, func(t *testing.T) {
				forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
					ctx := testenv.Context(t)
					connect := testenv.ConnectString(t)
					client, other := newClient(t, connect), newClient(t, connect)
					outer := acquire(t, ctx, locks.NewInterProcessMutex(client, "/outer"))
					inner := lock(outer.Client())
					if waits {
						first := acquire(t, ctx, lock(other))
						waiting, cancel := context.WithCancel(ctx)
						failed := make(chan error, 1)
						go func() {
							_, err := inner.Acquire(waiting)
							failed <- err
						}()
						if hold, err := inner.TryAcquire(ctx, 100*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
							t.Fatal(hold, err)
						}
						end(t, client, outer)
						cancel()
						if err := <-failed; err == nil {
							t.Error("granted")
						}
						release(t, first)
					} else {
						hold := acquire(t, ctx, inner)
						end(t, client, outer)
						if err := hold.Release(ctx); err != nil {
							t.Error(err)
						}
					}
					next, err := lock(other).TryAcquire(ctx, 2*time.Second)
					if err != nil {
						t.Fatal("a node is left:", err)
					}
					release(t, next)
				})
			})
		}
	}
}
