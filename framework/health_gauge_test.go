package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
	"github.com/gocurator/curator/retry"
)

func TestGaugesAreTheNumbersOfHealth(t *testing.T) {
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
