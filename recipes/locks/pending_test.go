package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// A client at the bound of WithMaxPending leaves no node in the line: it would hold everybody up as long as the
// session.
func TestWaitCancelledWithTooManyPendingLeavesNoNode(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	holder, bounded := startBounded(t, connect, 0), startBounded(t, connect, 1)
	const path = "/bounded/lock"
	hold, err := locks.NewInterProcessMutex(holder, path).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	running := make(chan struct{}, 2)
	block := func(context.Context, callbacks.Event) {
		running <- struct{}{}
		<-release
	}
	if err := bounded.CheckExists().InBackground(block).ForPath(ctx, "/"); err != nil {
		t.Fatal(err)
	}
	<-running
	if err := bounded.CheckExists().InBackground(block).ForPath(ctx, "/"); err != nil { // behind it
		t.Fatal(err)
	}
	if _, err := locks.NewInterProcessMutex(bounded, path).TryAcquire(ctx, 200*time.Millisecond); err == nil {
		t.Fatal("acquired what is held")
	}
	deadline := time.Now().Add(3 * time.Second)
	for {
		nodes, err := holder.GetChildren().ForPath(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("3 s after the wait ended the line is %v", nodes)
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if err := hold.Release(ctx); err != nil {
		t.Error(err)
	}
	if hold, err := locks.NewInterProcessMutex(holder, path).TryAcquire(ctx, 3*time.Second); err != nil {
		t.Errorf("the next one: %v", err)
	} else {
		_ = hold.Release(ctx)
	}
	close(release)
}

func startBounded(tb testing.TB, connect string, pending int) *framework.Client {
	tb.Helper()
	client, err := framework.New(connect, framework.WithMaxPending(pending), framework.WithSessionTimeout(30*time.Second))
	if err != nil {
		tb.Fatal(err)
	}
	if err := client.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	if err := client.BlockUntilConnected(testenv.Context(tb)); err != nil {
		tb.Fatal(err)
	}
	if err := client.Drain(testenv.Context(tb)); err != nil { // the ensemble tracker
		tb.Fatal(err)
	}
	return client
}
