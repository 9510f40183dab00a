package locks_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

type luggageKey struct{}

// The session and the lock outlive a hold, and keep nothing of it.
func TestEveryLockDropsReleasedHolds(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		client := newClient(t, testenv.ConnectString(t))
		l := lock(client)
		collected := make(chan struct{})
		func() {
			luggage := new([1 << 10]byte)
			runtime.AddCleanup(luggage, func(c chan struct{}) { close(c) }, collected)
			hold := acquire(t, locks.WithOwner(context.WithValue(ctx, luggageKey{}, luggage)), l)
			release(t, hold)
		}()
		release(t, acquire(t, ctx, l)) // what the client did last may be there still
		testenv.Eventually(t, func() bool {
			runtime.GC()
			select {
			case <-collected:
				return true
			default:
				return false
			}
		}, "the values of the context are garbage")
		if l.IsAcquiredInThisProcess() {
			t.Error("acquired")
		}
	})
}
