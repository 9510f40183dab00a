package framework_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

func TestHealthShowsTheLifeOfAClient(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := newProxy(t)
	client := newClient(t, connect, framework.WithRetryPolicy(retry.Forever(time.Hour)))
	if h := client.Health(); h != (framework.Health{}) {
		t.Errorf("before the start: %+v", h)
	}
	start(t, client)
	must(t, client.BlockUntilConnected(ctx))
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
	if h := client.Health(); h.Callbacks != 3 || h.CallbackAge <= 0 || h.Pending != 4 || h.InFlight != 0 {
		t.Errorf("behind a callback that blocks: %+v", h)
	}
	close(end)
	must(t, client.Drain(ctx))
	if h := client.Health(); h.Pending != 0 || h.Callbacks != 0 {
		t.Errorf("drained: %+v", h)
	}

	states := record(client)
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

func TestDrainWaitsForCallbacksAndWhatTheyBegin(t *testing.T) {
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

func TestMaxPendingRefusesTheBackgroundAndHasTheForegroundWait(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := newProxy(t)
	client := newClient(t, connect, framework.WithMaxPending(3))
	states := record(client)
	start(t, client)
	states.want(t, connected)
	restore := outage(proxy)
	states.want(t, suspended)

	results := newEvents()
	get := client.CheckExists().InBackground(results.callback)
	for range 3 {
		must(t, get.ForPath(ctx, "/"))
	}
	err := get.ForPath(ctx, "/")
	if !errors.Is(err, framework.ErrTooManyPending) {
		t.Errorf("the fourth of the background: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := client.CheckExists().ForPath(short, "/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the fourth of the foreground: %v", err)
	}
	waited := make(chan error)
	go func() {
		_, err := client.CheckExists().ForPath(ctx, "/")
		waited <- err
	}()
	restore()
	must(t, receive(t, waited))
	for range 3 {
		must(t, receive(t, results).Err)
	}
	must(t, client.Drain(ctx))
	must(t, get.ForPath(ctx, "/"))
	must(t, receive(t, results).Err)
}

// The foreground does not wait for callbacks: a callback may use it at the bound.
func TestMaxPendingLeavesRoomForACallback(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := startClient(t, testenv.ConnectString(t), framework.WithMaxPending(2))
	done := make(chan error, 1)
	must(t, client.CheckExists().InBackground(func(ctx context.Context, _ callbacks.Event) {
		for range 2 { // as many as may be pending: their callbacks are behind this one
			must(t, client.CheckExists().InBackground(func(context.Context, callbacks.Event) {}).ForPath(ctx, "/"))
		}
		_, err := client.CheckExists().ForPath(ctx, "/")
		done <- err
	}).ForPath(ctx, "/"))
	must(t, receive(t, done))
}

func TestMaxPendingEndsItsWaitsWithTheClient(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := newClient(t, "127.0.0.1:1", framework.WithMaxPending(1))
	start(t, client)
	results := newEvents()
	must(t, client.CheckExists().InBackground(results.callback).ForPath(ctx, "/"))
	waited := make(chan error)
	go func() {
		_, err := client.CheckExists().ForPath(ctx, "/")
		waited <- err
	}()
	must(t, client.Close())
	wantErr(t, "waiting", receive(t, waited), framework.ErrClosed)
}

func TestGaugesShowHealthUntilClose(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	client := startClient(t, testenv.ConnectString(t), framework.WithMeterProvider(provider))
	must(t, client.BlockUntilConnected(ctx))
	gauges := func() map[string]bool {
		var rm metricdata.ResourceMetrics
		must(t, reader.Collect(ctx, &rm))
		found := make(map[string]bool)
		for _, scope := range rm.ScopeMetrics {
			for _, m := range scope.Metrics {
				switch data := m.Data.(type) {
				case metricdata.Gauge[float64]:
					found[m.Name] = len(data.DataPoints) == 1
				case metricdata.Sum[int64]:
					found[m.Name] = len(data.DataPoints) == 1
				}
			}
		}
		return found
	}
	names := []string{
		"curator.client.requests.in_flight", "curator.client.requests.queued", "curator.client.operations.pending",
		"curator.client.operations.parked", "curator.client.callbacks.queued", "curator.client.callbacks.age",
		"curator.client.answer.age", "curator.client.connected", "curator.client.operations.retrying",
		"curator.client.watches", "curator.session.remaining",
	}
	found := gauges()
	for _, name := range names {
		if !found[name] {
			t.Errorf("no %s", name)
		}
	}
	must(t, client.Close())
	found = gauges()
	for _, name := range names {
		if found[name] {
			t.Errorf("%s is shown after Close", name)
		}
	}
}
