package framework_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

func TestHealthDuringLifeCycle(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := newProxy(t)
	client := newClient(t, connect, framework.WithRetryPolicy(retry.Forever(time.Hour)))
	if h := client.Health(); h != (framework.Health{}) {
		t.Errorf("before the start: %+v", h)
	}
	states := record(client)
	start(t, client)
	states.want(t, connected)
	h := client.Health()
	if h.Life != framework.Started || h.State != framework.Connected || h.Server != proxy.Addr() ||
		h.SessionID != client.SessionID() || h.LastAnswer.IsZero() {
		t.Errorf("connected: %+v", h)
	}

	// A callback that blocks holds back the results behind it.
	began, end := make(chan struct{}), make(chan struct{})
	must(t, client.CheckExists().InBackground(func(context.Context, callbacks.Event) {
		close(began)
		<-end
	}).ForPath(ctx, "/"))
	<-began
	results := newEvents()
	for range 3 {
		must(t, client.CheckExists().InBackground(results.callback).ForPath(ctx, "/"))
	}
	_, err := client.CheckExists().ForPath(ctx, "/")
	must(t, err)
	// An operation is counted out after its caller has woken up.
	testenv.Eventually(t, func() bool { return client.Health().Pending == 4 }, "the end of the last operation")
	if h := client.Health(); h.Callbacks != 3 || h.CallbackAge <= 0 || h.Pending != 4 || h.InFlight != 0 {
		t.Errorf("behind a callback that blocks: %+v", h)
	}
	close(end)
	must(t, client.Drain(ctx))
	if h := client.Health(); h.Pending != 0 || h.Callbacks != 0 {
		t.Errorf("drained: %+v", h)
	}

	restore := outage(proxy)
	states.want(t, suspended)
	must(t, client.CheckExists().InBackground(results.callback).ForPath(ctx, "/"))
	if h := client.Health(); h.State != framework.Suspended || h.Server != "" || h.Parked != 1 || h.Pending != 1 {
		t.Errorf("without a connection: %+v", h)
	}
	restore()
	must(t, client.Drain(ctx))
	must(t, client.Close())
	if h := client.Health(); h.Life != framework.Stopped || h.Server != "" || h.Pending != 0 {
		t.Errorf("closed: %+v", h)
	}
}

func TestDrainWaitsForCallbacksAndTheirOperations(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := startClient(t, testenv.ConnectString(t))
	const generations = 100
	left := generations
	var again callbacks.BackgroundCallback
	again = func(ctx context.Context, _ callbacks.Event) {
		if left--; left > 0 {
			must(t, client.CheckExists().InBackground(again).ForPath(ctx, "/"))
		}
	}
	must(t, client.CheckExists().InBackground(again).ForPath(ctx, "/"))
	must(t, client.Drain(ctx))
	if left != 0 {
		t.Errorf("%d generations are left", left)
	}

	began, end := make(chan struct{}), make(chan struct{})
	must(t, client.CheckExists().InBackground(func(context.Context, callbacks.Event) {
		close(began)
		<-end
	}).ForPath(ctx, "/"))
	<-began
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := client.Drain(short); !errors.Is(err, context.Canceled) {
		t.Errorf("drained behind a callback that runs: %v", err)
	}
	close(end)
	must(t, client.Drain(ctx))
}
