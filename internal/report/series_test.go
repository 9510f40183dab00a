package report_test

import (
	"errors"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/codes"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// The instruments of a recipe are made when a provider listens.
func TestReportsWithoutProvidersAllocateNothing(t *testing.T) {
	off := map[string]*telemetry.Telemetry{
		"nil": nil,
		"no-op providers": telemetry.New(telemetry.Config{
			TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: noopmetric.NewMeterProvider(),
		}),
		"no providers": telemetry.New(telemetry.Config{}),
	}
	for name, tel := range off {
		t.Run(name, func(t *testing.T) {
			var lock report.Lock
			var election report.Election
			var barrier report.Barrier
			var queue report.Queue
			allocations := testing.AllocsPerRun(100, func() {
				lock = report.NewLock(tel, "mutex", "orders", "/lock")
				election = report.NewElection(tel, "leader_latch", "orders", "", "/leader")
				barrier = report.NewBarrier(tel, "barrier", "orders", "/barrier")
				queue = report.NewQueue(tel, "queue", "orders", "/queue")
			})
			if allocations != 0 {
				t.Errorf("%v allocations", allocations)
			}
			_, w := lock.Acquire(t.Context())
			lock.Hold(w).End(report.Released)
			_, w = election.Elect(t.Context())
			w.End(report.Elected, nil)
			_, w = barrier.Wait(t.Context(), "wait", 0)
			w.End(report.Passed, nil)
			_, x := queue.Send(t.Context(), 1)
			x.End("", nil)
		})
	}
}

// Names are the program's, which may make them up: metrics have the first hundred, spans all.
func TestNamesBeyondAHundredAreOneSeries(t *testing.T) {
	const names = 130
	o := observe.New(t)
	tel := newTelemetry(o)
	for i := range names {
		name := fmt.Sprintf("name%d", i)
		run(t.Context(), tel, telemetry.Operation{Name: "create", Namespace: name})
		lock := report.NewLock(tel, "mutex", name, "/lock")
		_, w := lock.Acquire(t.Context())
		w.End(report.Acquired, nil)
		queue := report.NewQueue(tel, "queue", name, "/queue")
		_, x := queue.Send(t.Context(), 1)
		x.End("", nil)
	}
	for _, metric := range []string{
		"db.client.operation.duration", "curator.lock.acquire.duration", "messaging.client.sent.messages",
	} {
		if got := len(observe.Points(o.Metrics(t)[metric])); got != 101 {
			t.Errorf("%s has %d series", metric, got)
		}
	}
	last := fmt.Sprintf("name%d", names-1)
	if got := observe.Attribute(o.Named("create " + last)[0], "db.namespace").AsString(); got != last {
		t.Errorf("the span is of namespace %q", got)
	}
	locks := o.Named("lock acquire")
	if got := observe.Attribute(locks[len(locks)-1], "curator.resource.name").AsString(); got != last {
		t.Errorf("the span is of lock %q", got)
	}
	if got := len(o.Named("send " + last)); got != 1 {
		t.Errorf("%d spans of the last queue", got)
	}
}

// An orderly end is no error.
func TestWaitEndedByCloseIsNoError(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	lock := report.NewLock(tel, "mutex", "", "/lock")
	_, w := lock.Acquire(t.Context())
	err := fmt.Errorf("acquire: %w", errtext.ErrClosed)
	w.End(report.Outcome(err, report.Acquired), err)
	span := o.Spans()[0]
	if got := observe.Attribute(span, "curator.outcome").AsString(); got != "closed" || span.Status().Code != codes.Unset {
		t.Errorf("outcome %q, status %v", got, span.Status())
	}
	_, w = lock.Acquire(t.Context())
	w.End(report.Failed, errors.New("no"))
	if got := o.Spans()[1].Status(); got.Code != codes.Error || got.Description != "" {
		t.Errorf("status %v", got)
	}
}

func TestEveryMetricHasTheNameOfTheClient(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o, func(c *telemetry.Config) { c.Name = "reader" })
	measureAll(t.Context(), tel)
	observeAll(t, tel)
	for name, m := range o.Metrics(t) {
		for _, p := range observe.Points(m) {
			if v, _ := p.Attributes.Value("curator.client.name"); v.AsString() != "reader" {
				t.Errorf("%s is of client %q", name, v.AsString())
			}
		}
	}
	for _, s := range o.Named("create orders") {
		if got := observe.Attribute(s, "curator.client.name").AsString(); got != "reader" {
			t.Errorf("the span is of client %q", got)
		}
	}
}
