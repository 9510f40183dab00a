package locks_test

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// A program knows the path that it has given, not those of the nodes below it.
func TestSemaphoreErrorHasUserPath(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	semaphore := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 2)
	mu := locks.NewInterProcessSemaphoreMutex(client, lockPath)
	takeLease(t, ctx, semaphore)
	acquire(t, ctx, mu)
	for _, tt := range []struct {
		try  func() error
		want string
	}{
		{func() error { _, err := semaphore.TryAcquireN(ctx, 2, 0); return err }, "locks: acquire /semaphore: not acquired"},
		{func() error { _, err := semaphore.AcquireN(ctx, 3); return err }, "locks: acquire /semaphore: 3 leases"},
		{func() error { _, err := mu.TryAcquire(ctx, 0); return err }, "locks: acquire /locks/orders: not acquired"},
		{
			func() error { return locks.NewInterProcessSemaphoreMutex(client, "/free").Release(ctx) },
			"locks: release /free: not held",
		},
	} {
		if err := tt.try(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
