package telemetry_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// The attributes of a kind are made once, for spans and metrics of all goroutines.
func TestOperationsBeginWhileOthersEnd(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				run(t.Context(), tel, telemetry.Operation{Name: "create", Namespace: fmt.Sprint(j)}, i%2 == 0, nil)
			}
		})
	}
	wg.Wait()
	for _, s := range o.Spans() {
		if got := s.Attributes()[0]; got != attribute.String("db.system.name", "zookeeper") {
			t.Fatalf("the attributes begin with %v", got)
		}
	}
}

// A future may be waited for twice.
func TestOperationEndsOnce(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint("background ", background), func(t *testing.T) {
			o, driver := observe.New(t), &counting{}
			tel := newTelemetry(o, func(c *telemetry.Config) { c.Driver = driver })
			r := begin(t.Context(), tel, telemetry.Operation{Name: "create"}, background)
			for _, err := range []error{nil, errors.New("later")} {
				r.End(time.Now(), telemetry.Facts{Err: err, Children: -1})
			}
			r.Retry(jute.ErrConnectionLoss, 0)
			if got := o.Values(t, "db.client.operation.duration"); got != "db.operation.name=create 1\n" {
				t.Errorf("measured %q", got)
			}
			if background && o.Values(t, "curator.background.queue.size") != " 0\n" {
				t.Errorf("queue size %q", o.Values(t, "curator.background.queue.size"))
			}
			if len(driver.operations) != 1 || len(driver.events) != 0 {
				t.Errorf("the driver got %v and %v", driver.operations, driver.events)
			}
			if got := o.Tree(); got != "create CLIENT\n" {
				t.Errorf("spans %q", got)
			}
		})
	}
}

// The callback of a background operation may have to wait for others, and its span with it.
func TestSpanEndsWithTheAnswer(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	r := begin(t.Context(), tel, telemetry.Operation{Name: "create"}, true)
	answered := time.Now()
	r.End(answered, telemetry.Facts{Children: -1})
	if end := o.Spans()[0].EndTime(); !end.Equal(answered) {
		t.Errorf("ends at %v, not with the answer at %v", end, answered)
	}
}

// blocking is a processor that takes its time with each span.
type blocking struct {
	sdktrace.SpanProcessor
	entered, release chan struct{}
}

func (b blocking) OnEnd(sdktrace.ReadOnlySpan) {
	close(b.entered)
	<-b.release
}

// A caller that gives up an operation ends its record, and a span processor may block it. Meanwhile the goroutine that
// reads the connection notes the answer.
func TestAnswerIsNotedWhileTheSpanProcessorBlocks(t *testing.T) {
	o := observe.New(t)
	b := blocking{o.Processor(), make(chan struct{}), make(chan struct{})}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b))
	tel := newTelemetry(o, func(c *telemetry.Config) { c.TracerProvider, c.RequestSpans = tracers, true })
	r := begin(t.Context(), tel, telemetry.Operation{Name: "create"}, false)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.End(time.Now(), telemetry.Facts{Children: -1})
	}()
	<-b.entered
	r.Request("create2", time.Now(), time.Now(), nil) // hangs if it waits for the other
	r.Retry(jute.ErrConnectionLoss, 0)
	r.End(time.Now(), telemetry.Facts{Children: -1})
	close(b.release)
	<-ended
}

func TestRequestsThatWereNeverWrittenHaveNoSpan(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.RequestSpans = true })
	r := begin(t.Context(), tel, telemetry.Operation{Name: "create"}, false)
	r.Request("create2", time.Time{}, time.Time{}, jute.ErrConnectionLoss)
	r.Request("create2", time.Now(), time.Now(), nil)
	r.End(time.Now(), telemetry.Facts{Children: -1})
	if got := o.Tree(); got != "create CLIENT\n  create2 CLIENT\n" {
		t.Errorf("spans\n%s", got)
	}
}

func TestSpansThatAreNotSampledStillPassTheTraceOn(t *testing.T) {
	o := observe.New(t, sdktrace.NeverSample())
	tel := newTelemetry(o)
	r := begin(t.Context(), tel, telemetry.Operation{Name: "create", Path: "/a"}, true)
	if sc := trace.SpanContextFromContext(r.Context()); !sc.IsValid() || sc.IsSampled() {
		t.Errorf("the span of the context is %v", sc)
	}
	r.End(time.Now(), telemetry.Facts{Children: -1})
	if len(o.Spans()) != 0 {
		t.Error("there is a span")
	}
	if got := o.Values(t, "db.client.operation.duration"); got != "db.operation.name=create 1\n" {
		t.Errorf("measured %q", got)
	}
}

func TestUntracedOperationsAreMeasured(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	ctx, request := o.Start(t.Context(), "request")
	aside := telemetry.Untraced(ctx)
	run(aside, tel, telemetry.Operation{Name: "create"}, false, nil)
	run(telemetry.Traced(aside, ctx), tel, telemetry.Operation{Name: "delete"}, false, nil)
	request.End()
	if got := o.Tree(); got != "request\n  delete CLIENT\n" {
		t.Errorf("spans\n%s", got)
	}
	want := "db.operation.name=create 1\ndb.operation.name=delete 1\n"
	if diff := cmp.Diff(want, o.Values(t, "db.client.operation.duration")); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

func TestOperationOfSeveralCausesIsLinkedToAll(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	one, first := o.Start(t.Context(), "one")
	two, second := o.Start(t.Context(), "two")
	causes := telemetry.WithLinks(t.Context(), one, two, t.Context())
	r := begin(causes, tel, telemetry.Operation{Name: "multi"}, false)
	run(r.Context(), tel, telemetry.Operation{Name: "getData"}, false, nil) // what follows has its one cause
	r.End(time.Now(), telemetry.Facts{Children: -1})
	first.End()
	second.End()
	want := "one\ntwo\nmulti CLIENT -> one -> two\n  getData CLIENT\n"
	if diff := cmp.Diff(want, o.Tree()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestPathsAreShownAsTheFormatterSays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		format func(string) string
		want   string
	}{
		{"none", nil, "create CLIENT zookeeper.path=/a\n"},
		{"a pattern", func(p string) string { return p + "/*" }, "create CLIENT zookeeper.path=/a/*\n"},
		{"nothing", func(string) string { return "" }, "create CLIENT\n"},
		{"one that panics", func(string) string { panic("no") }, "create CLIENT\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observe.New(t)
			tel := newTelemetry(o, func(c *telemetry.Config) { c.FormatPath = tt.format })
			run(t.Context(), tel, telemetry.Operation{Name: "create", Path: "/a"}, false, nil)
			if diff := cmp.Diff(tt.want, o.Tree("zookeeper.path")); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpanShowsNoShortWaitAndNoServerTwice(t *testing.T) {
	const server, other = "127.0.0.1:2181", "127.0.0.2:2181"
	for _, tt := range []struct {
		name, server string
		wait         time.Duration
		want         string
	}{
		{"neither", server, time.Millisecond - 1, ""},
		{"a wait", server, time.Millisecond, "curator.background.queue_time=0.001"},
		{"another server", other, 0, "network.peer.address=127.0.0.2 network.peer.port=2181"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observe.New(t)
			tel := newTelemetry(o, func(c *telemetry.Config) { c.Server = server })
			begun := time.Now()
			r := tel.Begin(t.Context(), new(telemetry.Record), telemetry.Operation{Name: "create"}, true, begun)
			r.End(begun.Add(time.Second), telemetry.Facts{Sent: begun.Add(tt.wait), Children: -1, Server: tt.server})
			want := "create CLIENT"
			if tt.want != "" {
				want += " " + tt.want
			}
			got := o.Tree("network.peer.address", "network.peer.port", "curator.background.queue_time")
			if diff := cmp.Diff(want+"\n", got); diff != "" {
				t.Errorf("span (-want +got):\n%s", diff)
			}
		})
	}
}
