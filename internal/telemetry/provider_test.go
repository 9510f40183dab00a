package telemetry_test

import (
	"context"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// off are the configurations without telemetry.
func off() map[string]*telemetry.Telemetry {
	return map[string]*telemetry.Telemetry{
		"nil": nil,
		"no-op providers": telemetry.New(telemetry.Config{
			TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: noopmetric.NewMeterProvider(),
		}),
		"no providers": telemetry.New(telemetry.Config{}),
		"the global providers before there are any": telemetry.New(telemetry.Config{
			TracerProvider: otel.GetTracerProvider(), MeterProvider: otel.GetMeterProvider(),
		}),
	}
}

func TestTelemetryThatIsOffAllocatesNothing(t *testing.T) {
	what := telemetry.Operation{Name: "create", Namespace: "orders", Path: "/a", Mode: "EPHEMERAL"}
	ctx := t.Context()
	for name, tel := range off() {
		t.Run(name, func(t *testing.T) {
			if tel.On() {
				t.Error("it is on")
			}
			memory := new(telemetry.Record)
			allocations := testing.AllocsPerRun(100, func() {
				for _, background := range []bool{false, true} {
					r := tel.Begin(ctx, memory, what, background, time.Time{})
					if r != nil {
						t.Error("something is begun")
					}
					r.Request("create2", time.Time{}, time.Time{}, nil)
					r.Retry(jute.ErrConnectionLoss, time.Second)
					r.GivenUp(jute.ErrConnectionLoss)
					r.End(time.Now(), telemetry.Facts{Children: -1})
				}
				tel.WatchEvent(zk.Event{Type: zk.EventNodeCreated, Path: "/a"})
				tel.SetIn(ctx)
				tel.WithoutSpans(ctx)
				tel.Watched(ctx, zk.Event{}, trace.SpanContext{}, func(context.Context) {})
				tel.SessionEvent(zk.StateHasSession, 7)
				tel.Connected(time.Second)
				tel.Unhandled(ctx, "background", jute.ErrConnectionLoss)
			})
			if allocations != 0 {
				t.Errorf("%v allocations", allocations)
			}
		})
	}
}

// globalVariable marks the process that TestGlobalProviderThatIsSetLaterIsUsed starts.
const globalVariable = "TELEMETRY_TEST_GLOBAL"

// A process has global providers once.
func TestGlobalProviderThatIsSetLaterIsUsed(t *testing.T) {
	if os.Getenv(globalVariable) != "" {
		setGlobalProviders(t)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), globalVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func setGlobalProviders(t *testing.T) {
	t.Helper()
	o, own := observe.New(t), observe.New(t)
	before := off()
	unset, placeholder, silent := before["no providers"], before["the global providers before there are any"],
		before["no-op providers"]
	busy := telemetry.New(telemetry.Config{})
	defer busy.Observe(func() telemetry.Load { return telemetry.Load{InFlight: 1} })()
	r := begin(t.Context(), unset, telemetry.Operation{Name: "sync"}, false)
	otel.SetTracerProvider(o.Tracers)
	r.End(time.Now(), telemetry.Facts{Children: -1})
	elsewhere := newTelemetry(own)
	for _, tel := range []*telemetry.Telemetry{unset, placeholder, silent, elsewhere} {
		run(t.Context(), tel, telemetry.Operation{Name: "create"}, false, nil)
	}
	if got := o.Tree(); got != "create CLIENT\ncreate CLIENT\n" { // not of what began before
		t.Errorf("spans\n%s", got)
	}
	if got := own.Tree(); got != "create CLIENT\n" {
		t.Errorf("spans of a client with its own providers\n%s", got)
	}
	meters := &calling{MeterProvider: o.Meters}
	otel.SetMeterProvider(meters)
	for _, tel := range []*telemetry.Telemetry{unset, placeholder, silent, elsewhere} {
		run(t.Context(), tel, telemetry.Operation{Name: "delete"}, false, nil)
	}
	if got := o.Values(t, "db.client.operation.duration"); got != "db.operation.name=delete 2\n" {
		t.Errorf("measured %q", got)
	}
	event := zk.Event{Type: zk.EventNodeCreated}
	during := func() { busy.WatchEvent(event) }
	meters.during.Store(&during)
	busy.WatchEvent(event)
	if got := o.Values(t, "curator.client.requests.in_flight"); got != " 1\n" {
		t.Errorf("the gauge of one client is %q", got)
	}
	late := telemetry.New(telemetry.Config{})
	otel.SetTracerProvider(nooptrace.NewTracerProvider())
	run(context.WithoutCancel(t.Context()), late, telemetry.Operation{Name: "getACL"}, false, nil)
	if len(o.Named("getACL")) != 1 {
		t.Error("what was made with a provider loses it")
	}
}

// calling is a provider that calls a function while it is asked for a meter for the first time.
type calling struct {
	metric.MeterProvider
	during atomic.Pointer[func()]
}

func (c *calling) Meter(name string, opts ...metric.MeterOption) metric.Meter {
	if during := c.during.Swap(nil); during != nil {
		(*during)()
	}
	return c.MeterProvider.Meter(name, opts...)
}

// The global providers may be set to those that do nothing, at any time.
func TestNoOpProvidersAreOffByPointerToo(t *testing.T) {
	tel := telemetry.New(telemetry.Config{
		TracerProvider: &nooptrace.TracerProvider{}, MeterProvider: &noopmetric.MeterProvider{},
	})
	if tel.On() {
		t.Error("it is on")
	}
}
