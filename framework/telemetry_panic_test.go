package framework_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/tracing"
)

// touchy is a processor that panics at the beginning or the end of a span.
type touchy struct{ start, end bool }

func (p touchy) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	if p.start {
		panic("at the start")
	}
}

func (p touchy) OnEnd(sdktrace.ReadOnlySpan) {
	if p.end {
		panic("at the end")
	}
}

func (touchy) Shutdown(context.Context) error   { return nil }
func (touchy) ForceFlush(context.Context) error { return nil }

// touchyDriver is a driver that panics.
type touchyDriver struct{}

func (touchyDriver) AddTrace(string, time.Duration) { panic("a trace") }
func (touchyDriver) AddCount(string, int)           { panic("a count") }

// What takes telemetry is the program's, as callbacks are: its panics end nothing.
func TestTelemetryPanicIsUnhandledError(t *testing.T) {
	t.Parallel()
	processor := func(p touchy) framework.Option {
		return framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p)))
	}
	for name, option := range map[string]framework.Option{
		"start": processor(touchy{start: true}), "end": processor(touchy{end: true}),
		"driver": tracing.WithDriver(touchyDriver{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, connect := newProxy(t)
			client := newClient(t, connect, option, framework.WithWatchSpans(), framework.WithRequestSpans(),
				tracing.WithDriverFailures())
			recorded := make(chan framework.UnhandledError, 1000)
			client.AddUnhandledErrorListener(func(_ context.Context, u framework.UnhandledError) { recorded <- u })
			must(t, client.Start())
			create(t, client, "/n", "")
			watcher, events := newWatcher()
			_, err := client.GetData().UsingWatcher(watcher).ForPath(t.Context(), "/n")
			must(t, err)
			must(t, wait(t, func(cb callbacks.BackgroundCallback) error {
				return client.SetData().InBackground(cb).ForPath(t.Context(), "/n", []byte("1"))
			}))
			receive(t, events)
			proxy.Faults().CutAll()
			_, err = client.GetData().ForPath(t.Context(), "/n")
			must(t, err)
			closeClient(t, client)
			u := receive(t, recorded)
			if !strings.HasPrefix(u.Message, "panic in tracer") || !strings.Contains(fmt.Sprint(u.Err), "touchy") {
				t.Errorf("got %q %v", u.Message, u.Err)
			}
		})
	}
}

// slow is a processor that blocks, until it is released, at the beginning of all spans but those of a name.
type slow struct {
	release chan struct{}
	except  string
}

func (p slow) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	if s.Name() != p.except {
		<-p.release
	}
}

func (slow) OnEnd(sdktrace.ReadOnlySpan)      {}
func (slow) Shutdown(context.Context) error   { return nil }
func (slow) ForceFlush(context.Context) error { return nil }

// A span processor may block: the events of the connection are delivered all the same. A protected create that was
// abandoned cleans up where the connection is read.
func TestTelemetryBlockedProcessorDelaysNoState(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	p := slow{make(chan struct{}), "create"}
	client := newClient(t, connect,
		framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p))))
	recorded := record(client)
	must(t, client.Start())
	defer closeClient(t, client)
	defer close(p.release)
	recorded.want(t, connected)
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldReply})
	ctx, cancel := context.WithCancel(testenv.Context(t))
	ended := make(chan error, 1)
	go func() {
		_, err := client.Create().WithProtection().ForPath(ctx, "/a", nil)
		ended <- err
	}()
	must(t, held.Wait(testenv.Context(t)))
	cancel()
	wantErr(t, "create", receive(t, ended), context.Canceled)
	removed := proxy.Faults().Add(curatortest.Rule{Ops: []string{"delete"}, Action: curatortest.HoldReply})
	held.Release()
	must(t, removed.Wait(testenv.Context(t)))
	proxy.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	removed.Release()
}
