package locks_test

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

const lockPath = "/locks/orders"

var newProxy = testclient.Proxy

// newClient returns a started client.
func newClient(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	patient := framework.WithRetryPolicy(retry.NTimes(5, 100*time.Millisecond))
	return testclient.Start(tb, connect, append([]framework.Option{patient}, opts...)...)
}

func acquire(tb testing.TB, ctx context.Context, mu locks.InterProcessLock) *locks.Hold { //nolint:revive // tb first
	tb.Helper()
	hold, err := mu.Acquire(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return hold
}

func release(tb testing.TB, hold *locks.Hold) {
	tb.Helper()
	if err := hold.Release(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// awaitEnd waits for the end of a hold and returns its cause.
func awaitEnd(tb testing.TB, ctx context.Context, hold *locks.Hold) error { //nolint:revive // tb first
	tb.Helper()
	select {
	case <-hold.Context().Done():
		return context.Cause(hold.Context())
	case <-ctx.Done():
		tb.Fatal("hold does not end")
		return nil
	}
}

// contenders returns how many nodes stand in line for the lock.
func contenders(tb testing.TB, connect string) int {
	tb.Helper()
	_, chroot, _ := strings.Cut(connect, "/")
	return len(testenv.Children(tb, path.Join("/", chroot, lockPath)))
}

// awaitContenders waits until so many nodes stand in line.
func awaitContenders(tb testing.TB, client *framework.Client, want int) {
	tb.Helper()
	mu := locks.NewInterProcessMutex(client, lockPath)
	testenv.Eventually(tb, func() bool {
		nodes, err := mu.ParticipantNodes(testenv.Context(tb))
		return err == nil && len(nodes) == want
	}, "contenders in line")
}

// watches returns what the server says about its watches.
func watches(tb testing.TB) string {
	tb.Helper()
	answer, err := testenv.Server(tb).FourLetterWord(testenv.Context(tb), "wchp")
	if err != nil {
		tb.Fatal(err)
	}
	return answer
}
