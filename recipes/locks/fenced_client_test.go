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
func TestEveryLockOfFencedClientFenceGoneLeavesNothing(t *testing.T) {
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
					next, err := lock(other).TryAcquire(ctx, time.Minute)
					if err != nil {
						t.Fatal("a node is left:", err)
					}
					release(t, next)
				})
			})
		}
	}
}

// TestLockOfFencedClientFenceGoneIsNotAcquired is a lock below another one.
func TestLockOfFencedClientFenceGoneIsNotAcquired(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	outer := acquire(t, ctx, locks.NewInterProcessMutex(client, "/outer"))
	rw := locks.NewInterProcessReadWriteLock(outer.Client(), lockPath)
	inner := acquire(t, ctx, rw.ReadLock())
	lease, err := locks.NewInterProcessSemaphoreV2(outer.Client(), "/semaphore", 3).AcquireN(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Client().Create().ForPath(ctx, "/n", nil); err != nil {
		t.Error(err)
	}
	if err := client.Delete().ForPath(ctx, outer.Path()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*framework.Client{inner.Client(), lease[0].Client()} {
		if _, err := c.Create().ForPath(ctx, "/late", nil); !errors.Is(err, locks.ErrLockLost) {
			t.Errorf("error is %v", err)
		}
	}
	if _, err := rw.ReadLock().Acquire(ctx); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("error is %v", err)
	}
}

// A lock of a fenced client is given back like any other: what the fence protects is not the lock's own node.
func TestLockOfFencedClientFenceGoneIsReleased(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, other *framework.Client, outer *locks.Hold){
		"released": func(t *testing.T, _ *framework.Client, outer *locks.Hold) { t.Helper(); release(t, outer) },
		"lost": func(t *testing.T, other *framework.Client, outer *locks.Hold) {
			t.Helper()
			deleteNode(t, other, outer.Path())
			wantLost(t, outer)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, connect := testenv.Context(t), testenv.ConnectString(t)
			client, other := newClient(t, connect), newClient(t, connect)
			outer := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
			inner := acquire(t, ctx, locks.NewInterProcessMutex(outer.Client(), lockPath+"/inner"))
			end(t, other, outer)
			if err := inner.Release(ctx); err != nil {
				t.Errorf("release: %v", err)
			}
			if nodes, err := locks.NewInterProcessMutex(other, lockPath+"/inner").ParticipantNodes(ctx); len(nodes) > 0 {
				t.Errorf("others wait for %v, %v", nodes, err)
			}
		})
	}
}
