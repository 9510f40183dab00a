package framework_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/observe"
)

func TestTelemetryPathsAddNoSeries(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := connectClient(t, testenv.ConnectString(t),
		observed(o, framework.WithSessionIDs(), framework.WithRequestSpans())...)
	const n = 1000
	done := newEvents()
	for range n {
		p := fmt.Sprintf("/%x/%x", rand.Uint64(), rand.Uint64())
		must(t, client.CheckExists().InBackground(done.callback).ForPath(testenv.Context(t), p))
	}
	for range n {
		must(t, receive(t, done).Err)
	}
	for _, name := range []string{"db.client.operation.duration", "curator.background.queue.duration"} {
		points := observe.Points(o.Metrics(t)[name])
		if len(points) != 1 || points[0].Value != n {
			t.Errorf("%s has %v, want one series of %d", name, points, n)
		}
	}
}

// Whatever a client does, its metrics are bounded.
func TestTelemetryMetricsAreBounded(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	o := observe.New(t)
	client, recorded := connectRecorded(t, connect, observed(o, framework.WithSessionIDs())...)
	ctx := testenv.Context(t)
	watcher, fired := newWatcher()
	for i, op := range operations {
		p := fmt.Sprint("/n-", i)
		_ = op.foreground(ctx, client, p) // errors are measured too
		_ = wait(t, func(cb callbacks.BackgroundCallback) error { return op.background(ctx, client, p, cb) })
	}
	create(t, client, "/watched", "")
	_, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, "/watched")
	must(t, err)
	setData(t, client, "/watched", "1")
	receive(t, fired)
	panicked := make(chan error, 1)
	client.AddUnhandledErrorListener(onUnhandled(panicked))
	must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { panic("/a/path") }).ForPath(ctx, "/"))
	receive(t, panicked)
	cut(t, proxy, curatortest.CutBefore, "getACL", 1)
	_, err = client.GetACL().ForPath(ctx, "/")
	must(t, err)
	recorded.want(t, suspended, reconnected)
	must(t, client.Reset())
	recorded.want(t, lost, reconnected)

	o.WantBounded(t)
	metrics := o.Metrics(t)
	for _, name := range []string{
		"db.client.operation.duration", "curator.client.retries", "curator.background.queue.duration",
		"curator.background.queue.size",
		"curator.unhandled_errors", "curator.connection.state_changes", "curator.connection.outage.duration",
		"curator.session.expirations", "curator.watch.events",
	} {
		points := observe.Points(metrics[name])
		if len(points) == 0 {
			t.Errorf("%s was not measured", name)
		}
		for _, p := range points {
			if v, _ := p.Attributes.Value("db.system.name"); v.AsString() != "zookeeper" {
				t.Errorf("%s is of system %q", name, v.AsString())
			}
			for _, a := range p.Attributes.ToSlice() {
				if a.Value.Type() == attribute.STRING && strings.ContainsAny(a.Value.AsString(), "/ ") &&
					a.Key != "db.operation.name" {
					t.Errorf("%s has %s=%q", name, a.Key, a.Value.AsString())
				}
			}
		}
	}
}

func TestTelemetryUnhandledErrorsAreCounted(t *testing.T) {
	t.Parallel()
	o := observe.New(t)
	client := connectClient(t, testenv.ConnectString(t), observed(o)...)
	recorded := make(chan error, 3)
	client.AddUnhandledErrorListener(onUnhandled(recorded))
	ctx := testenv.Context(t)
	must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { panic("callback") }).ForPath(ctx, "/"))
	receive(t, recorded)
	client.AddCuratorListener(func(context.Context, callbacks.Event) { panic("listener") })
	must(t, client.Sync().InBackground(nil).ForPath(ctx, "/"))
	receive(t, recorded)
	wantValues(t, o, "curator.unhandled_errors", `
curator.source=callback,error.type=_OTHER 1
curator.source=listener,error.type=_OTHER 1
`)
}

func TestTelemetryMetricsDistinguishNamespaces(t *testing.T) {
	t.Parallel()
	addr, chroot := testenv.Addr(t), testenv.Chroot(t)
	o := observe.New(t)
	client := connectClient(t, addr+chroot, observed(o)...)
	ctx := testenv.Context(t)
	for _, ns := range []string{"orders", "bills", "orders", ""} {
		exists(t, client.UsingNamespace(ns), "/")
	}
	_, err := client.UsingNamespace("orders").GetData().ForPath(ctx, "/none")
	wantErr(t, "get data", err, zk.ErrNoNode)
	got := make(map[string]int64)
	for _, p := range observe.Points(o.Metrics(t)["db.client.operation.duration"]) {
		op, _ := p.Attributes.Value("db.operation.name")
		ns, _ := p.Attributes.Value("db.namespace")
		code, _ := p.Attributes.Value("db.response.status_code")
		below := strings.TrimPrefix(ns.AsString(), chroot[1:]+"/")
		got[strings.TrimSpace(op.AsString()+" "+below+" "+code.AsString())] = p.Value
	}
	for name, want := range map[string]int64{
		"exists": 1, "exists orders": 2, "exists bills": 1,
		"getData orders NONODE": 1,
	} {
		if got[name] != want {
			t.Errorf("%s was measured %d times, want %d: %v", name, got[name], want, got)
		}
	}
}
