package telemetry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// without is a sampler that drops the spans of some names and takes all others, whatever becomes of those above them.
type without map[string]bool

func (w without) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if w[p.Name] {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return sdktrace.AlwaysSample().ShouldSample(p)
}

func (without) Description() string { return "without some" }

// The program's own operations are the sampler's business, whatever became of the span above them.
func TestOperationInADroppedSpanIsOfferedToTheSampler(t *testing.T) {
	o := observe.New(t, without{"request": true})
	tel := newTelemetry(o)
	request, span := o.Start(t.Context(), "request")
	defer span.End()
	run(request, tel, telemetry.Operation{Name: "create"}, false, nil)
	if got := o.Tree(); got != "create CLIENT\n" {
		t.Errorf("spans %q", got)
	}
}

// A trace that another process has dropped may still be wanted in this one.
func TestInnerWorkOfARemoteTraceIsOfferedToTheSampler(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	far := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true})
	ctx := tel.ExpectingErrors(trace.ContextWithSpanContext(t.Context(), far))
	run(ctx, tel, telemetry.Operation{Name: "create"}, false, nil)
	if len(o.Named("create")) != 0 {
		t.Error("taken, though the default sampler does as the parent's")
	}
	o = observe.New(t, sdktrace.AlwaysSample())
	tel = newTelemetry(o)
	ctx = tel.ExpectingErrors(trace.ContextWithSpanContext(t.Context(), far))
	run(ctx, tel, telemetry.Operation{Name: "create"}, false, nil)
	if len(o.Named("create")) != 1 {
		t.Error("not offered")
	}
}

func TestOperationIsLinkedToThoseOfItsCausesThatAreSampled(t *testing.T) {
	o := observe.New(t, without{"dropped": true})
	tel := newTelemetry(o)
	taken, first := o.Start(t.Context(), "taken")
	dropped, second := o.Start(t.Context(), "dropped")
	flight := telemetry.Untraced(t.Context())
	run(telemetry.WithLinks(flight, dropped, taken), tel, telemetry.Operation{Name: "multi"}, false, nil)
	run(telemetry.WithLinks(flight, dropped, dropped), tel, telemetry.Operation{Name: "multi of none"}, false, nil)
	first.End()
	second.End()
	if diff := cmp.Diff("taken\nmulti CLIENT -> taken\n", o.Tree()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
