package testclient

import (
	"context"
	"testing"

	"github.com/gocurator/curator/framework"
)

// AwaitState returns what waits for a state of the connection that comes from now on. The test fails if ctx ends first.
func AwaitState(
	ctx context.Context, tb testing.TB, client *framework.Client, state framework.ConnectionState,
) (wait func()) {
	tb.Helper()
	came := make(chan struct{}, 1)
	remove := client.AddConnectionStateListener(func(_ context.Context, now framework.ConnectionState) {
		if now == state {
			select {
			case came <- struct{}{}:
			default:
			}
		}
	})
	return func() {
		tb.Helper()
		defer remove()
		select {
		case <-came:
		case <-ctx.Done():
			tb.Fatalf("the connection is not %v", state)
		}
	}
}
