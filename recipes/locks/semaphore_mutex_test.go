package locks_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

func TestSemaphoreMutexReleaseByAnyGoroutine(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	mu := locks.NewInterProcessSemaphoreMutex(newClient(t, connect), lockPath)
	if err := mu.Release(ctx); !errors.Is(err, locks.ErrNotOwner) {
		t.Errorf("before it is acquired: %v", err)
	}
	hold := acquire(t, locks.WithOwner(ctx), mu)
	if _, err := mu.TryAcquire(ctx, 20*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	if !mu.IsAcquiredInThisProcess() {
		t.Error("a refused contender has taken it away")
	}
	if err := mu.Release(ctx); err != nil {
		t.Error(err)
	}
	if mu.IsAcquiredInThisProcess() || hold.Context().Err() == nil {
		t.Error("it is held")
	}
	release(t, hold)
	if err := mu.Release(ctx); !errors.Is(err, locks.ErrNotOwner) {
		t.Errorf("released once too often: %v", err)
	}
	awaitNothing(t, connect)
}

// CURATOR-376: the next one has the lock before the release of the last has returned.
func TestSemaphoreMutexReleaseKeepsNextHold(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	mu := locks.NewInterProcessSemaphoreMutex(newClient(t, connect), lockPath)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				hold, err := mu.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if hold.Context().Err() != nil || !mu.IsAcquiredInThisProcess() {
					t.Error("the release of the last hold has taken this one")
				}
				if err := mu.Release(ctx); err != nil {
					t.Error(err)
				}
				if hold.Context().Err() == nil {
					t.Error("another hold is released")
				}
			}
		})
	}
	wg.Wait()
	if mu.IsAcquiredInThisProcess() {
		t.Error("it is held")
	}
	awaitNothing(t, connect)
}

// TestSemaphoreWaiterSessionExpiredTakesTurnAgain has a client ask for a lease after a waiter has lost
// its session, and with it the turn.
func TestSemaphoreWaiterSessionExpiredTakesTurnAgain(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	_, chroot, _ := strings.Cut(connect, "/")
	raw := testenv.Raw(t)
	awaitNodes := func(session int64, want int) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			var of []int64
			for _, below := range []string{"/locks", "/leases"} {
				children, _, err := raw.Children("/" + chroot + lockPath + below)
				if err != nil {
					continue
				}
				for _, child := range children {
					if _, stat, err := raw.Get("/" + chroot + lockPath + below + "/" + child); err == nil {
						of = append(of, stat.EphemeralOwner)
					}
				}
			}
			of = slices.DeleteFunc(of, func(owner int64) bool { return owner != session })
			return len(of) == want
		}, "nodes of a waiter")
	}
	granted := make(chan *locks.Hold, 2)
	ask := func(l locks.InterProcessLock) {
		go func() {
			hold, err := l.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			granted <- hold
		}()
	}
	hold := acquire(t, ctx, locks.NewInterProcessSemaphoreMutex(newClient(t, connect), lockPath))
	client, other := newClient(t, connect), newClient(t, connect)
	ask(locks.NewInterProcessSemaphoreMutex(client, lockPath))
	testenv.Eventually(t, func() bool { return client.SessionID() != 0 }, "a session")
	old := client.SessionID()
	awaitNodes(old, 1) // the turn
	if err := testenv.Server(t).ExpireSession(old); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return client.SessionID() != old }, "another session")
	awaitNodes(client.SessionID(), 1)
	ask(locks.NewInterProcessSemaphoreMutex(other, lockPath))
	testenv.Eventually(t, func() bool { return other.SessionID() != 0 }, "a session")
	awaitNodes(other.SessionID(), 1)
	release(t, hold)
	for range 2 {
		if hold := <-granted; hold != nil {
			release(t, hold)
		}
	}
}
