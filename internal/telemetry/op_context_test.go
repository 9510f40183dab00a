package telemetry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

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

func TestRecipeWhoseSpanIsDroppedHasNoneForItsInnerWork(t *testing.T) {
	what := telemetry.Operation{Name: "create"}
	for _, tt := range []struct{ name, drop, want string }{
		{"none", "", "lock acquire\n  create CLIENT\nlock hold -> lock acquire\n"},
		{"the wait", "lock acquire", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := observe.New(t, without{tt.drop: true})
			tel := newTelemetry(o)
			lock := tel.NewLock("mutex", "", "/lock")
			request, span := o.Start(t.Context(), "request")
			defer span.End()
			within, asked := lock.Acquire(request)
			run(tel.ExpectingErrors(within), tel, what, false, nil)
			asked.End(telemetry.Acquired, nil)
			lock.Hold(asked).End(telemetry.Released)
			if diff := cmp.Diff(tt.want, o.Tree()); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
			if got := o.Values(t, "db.client.operation.duration"); got != "db.operation.name=create 1\n" {
				t.Errorf("measured %q", got)
			}
		})
	}
}

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

func TestTenureThatAnOperationEndsIsToldOfWhileThatIsOnItsWay(t *testing.T) {
	begun := func(
		t *testing.T, samplers ...sdktrace.Sampler,
	) (*observe.Observer, *telemetry.Telemetry, *telemetry.HoldSpan) {
		t.Helper()
		o := observe.New(t, samplers...)
		tel := newTelemetry(o)
		lock := tel.NewLock("mutex", "", "/lock")
		_, asked := lock.Acquire(t.Context())
		asked.End(telemetry.Acquired, nil)
		return o, tel, lock.Hold(asked)
	}
	const held = "curator.lock.held"
	t.Run("recorded", func(t *testing.T) {
		o, tel, tenure := begun(t)
		ctx := tenure.EndWith(t.Context(), telemetry.Released)
		if got := o.Values(t, held); got != "curator.recipe=mutex 1\n" {
			t.Errorf("held before the operation: %q", got)
		}
		run(ctx, tel, telemetry.Operation{Name: "delete"}, false, nil)
		tenure.End(telemetry.Lost)
		if got := o.Values(t, held); got != "curator.recipe=mutex 0\n" {
			t.Errorf("held after it: %q", got)
		}
		want := "lock acquire curator.outcome=acquired\n" +
			"  lock hold curator.outcome=released -> lock acquire\n  delete CLIENT\n"
		if diff := cmp.Diff(want, o.Tree("curator.outcome")); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
	})
	t.Run("by a caller in another trace", func(t *testing.T) {
		o, tel, tenure := begun(t)
		ctx, other := o.Start(t.Context(), "other")
		run(tenure.EndWith(ctx, telemetry.Released), tel, telemetry.Operation{Name: "delete"}, false, nil)
		other.End()
		want := "lock acquire\n  lock hold -> lock acquire\nother\n  delete CLIENT\n"
		if diff := cmp.Diff(want, o.Tree()); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
	})
	t.Run("in a trace that was dropped", func(t *testing.T) {
		o, tel, tenure := begun(t, without{"lock acquire": true})
		run(tenure.EndWith(t.Context(), telemetry.Released), tel, telemetry.Operation{Name: "delete"}, false, nil)
		if got := o.Tree(); got != "" {
			t.Errorf("spans %q", got)
		}
		if got := o.Values(t, "db.client.operation.duration"); got != "db.operation.name=delete 1\n" {
			t.Errorf("measured %q", got)
		}
	})
	t.Run("with that of which it is a part", func(t *testing.T) {
		o, tel, whole := begun(t)
		lock := tel.NewLock("mutex", "", "/part")
		_, asked := lock.Acquire(t.Context())
		part := lock.Hold(asked)
		ctx := part.EndWith(whole.EndWith(t.Context(), telemetry.Released), telemetry.Released)
		run(ctx, tel, telemetry.Operation{Name: "delete"}, false, nil)
		if got := o.Values(t, held); got != "curator.recipe=mutex 0\n" {
			t.Errorf("held: %q", got)
		}
	})
	t.Run("with that of which it is a part, in no trace", func(t *testing.T) {
		o, _, part := begun(t)
		untraced := newTelemetry(o, func(c *telemetry.Config) { c.TracerProvider = nooptrace.NewTracerProvider() })
		lock := untraced.NewLock("multi_lock", "", "/lock")
		_, asked := lock.Acquire(t.Context())
		whole := lock.Hold(asked)
		ctx := part.EndWith(whole.EndWith(t.Context(), telemetry.Released), telemetry.Released)
		run(ctx, untraced, telemetry.Operation{Name: "delete"}, false, nil)
		if got := o.Values(t, held); got != "curator.recipe=multi_lock 0\ncurator.recipe=mutex 0\n" {
			t.Errorf("held: %q", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		o, _, tenure := begun(t)
		tenure.EndWith(t.Context(), telemetry.Released)
		tenure.End(telemetry.Released)
		if got := o.Values(t, held); got != "curator.recipe=mutex 0\n" {
			t.Errorf("held: %q", got)
		}
	})
	t.Run("without a parent", func(t *testing.T) {
		var tenure *telemetry.HoldSpan
		if ctx := t.Context(); tenure.EndWith(ctx, telemetry.Released) != ctx {
			t.Error("the context is another")
		}
	})
}
