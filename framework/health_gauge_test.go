package framework_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

func TestHealthGaugesEqualHealth(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client := newClient(t, connect, observed(o, framework.WithRetryPolicy(retry.Forever(time.Hour)))...)
	states := record(client)
	start(t, client)
	states.want(t, connected)
	gauge := func(name string) int64 {
		points := observe.Points(o.Metrics(t)[name])
		if len(points) != 1 {
			t.Fatalf("%s has %d series", name, len(points))
		}
		return points[0].Value
	}
	want := func(when string, numbers map[string]int) {
		t.Helper()
		for name, n := range numbers {
			if got := gauge(name); got != int64(n) {
				t.Errorf("%s: %s is %d, want %d", when, name, got, n)
			}
		}
	}

	watcher, _ := newWatcher()
	for _, path := range []string{"/", "/none"} {
		_, err := client.CheckExists().UsingWatcher(watcher).ForPath(ctx, path)
		must(t, err)
	}
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
	h := client.Health()
	if h.Watches != 2 || h.SessionLeft <= 0 || h.SessionLeft > client.SessionTimeout() {
		t.Errorf("connected: %+v", h)
	}
	want("connected", map[string]int{
		"curator.client.connected": 1, "curator.client.watches": 2, "curator.client.callbacks.queued": 3,
		"curator.client.operations.pending": 4, "curator.client.operations.parked": 0,
		"curator.client.operations.retrying": 0, "curator.client.requests.in_flight": 0,
	})
	if left := gauge("curator.session.remaining"); left < int64(client.SessionTimeout().Seconds())/2 {
		t.Errorf("%d s of the session are left", left)
	}
	close(end)
	must(t, client.Drain(ctx))

	restore := outage(proxy)
	states.want(t, suspended)
	must(t, client.CheckExists().InBackground(results.callback).ForPath(ctx, "/"))
	want("without a connection", map[string]int{
		"curator.client.connected": 0, "curator.client.operations.parked": 1, "curator.client.watches": 2,
	})
	restore()
	must(t, client.Drain(ctx))
	must(t, client.Close())
	if h := client.Health(); h.SessionLeft != 0 || h.Watches != 0 {
		t.Errorf("closed: %+v", h)
	}
}

func TestHealthGaugesEndWithClose(t *testing.T) {
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
