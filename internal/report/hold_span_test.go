package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// without is a sampler that drops the spans of some names and takes all others, whatever happens to their parents.
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
			lock := report.NewLock(tel, "mutex", "", "/lock")
			request, span := o.Start(t.Context(), "request")
			defer span.End()
			within, asked := lock.Acquire(request)
			run(tel.ExpectingErrors(within), tel, what)
			asked.End(report.Acquired, nil)
			lock.Hold(asked).End(report.Released)
			if diff := cmp.Diff(tt.want, o.Tree()); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
			if got := o.Values(t, "db.client.operation.duration"); got != "db.operation.name=create 1\n" {
				t.Errorf("measured %q", got)
			}
		})
	}
}

func TestHoldSpanEndWithIsRecordedDuringTheRequest(t *testing.T) {
	begun := func(
		t *testing.T, samplers ...sdktrace.Sampler,
	) (*observe.Observer, *telemetry.Telemetry, *report.HoldSpan) {
		t.Helper()
		o := observe.New(t, samplers...)
		tel := newTelemetry(o)
		lock := report.NewLock(tel, "mutex", "", "/lock")
		_, asked := lock.Acquire(t.Context())
		asked.End(report.Acquired, nil)
		return o, tel, lock.Hold(asked)
	}
	const held = "curator.lock.held"
	t.Run("recorded", func(t *testing.T) {
		o, tel, hold := begun(t)
		ctx := hold.EndWith(t.Context(), report.Released)
		if got := o.Values(t, held); got != "curator.recipe=mutex 1\n" {
			t.Errorf("held before the operation: %q", got)
		}
		run(ctx, tel, telemetry.Operation{Name: "delete"})
		hold.End(report.Lost)
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
		o, tel, hold := begun(t)
		ctx, other := o.Start(t.Context(), "other")
		run(hold.EndWith(ctx, report.Released), tel, telemetry.Operation{Name: "delete"})
		other.End()
		want := "lock acquire\n  lock hold -> lock acquire\nother\n  delete CLIENT\n"
		if diff := cmp.Diff(want, o.Tree()); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
	})
	t.Run("in a trace that was dropped", func(t *testing.T) {
		o, tel, hold := begun(t, without{"lock acquire": true})
		run(hold.EndWith(t.Context(), report.Released), tel, telemetry.Operation{Name: "delete"})
		if got := o.Tree(); got != "" {
			t.Errorf("spans %q", got)
		}
		if got := o.Values(t, "db.client.operation.duration"); got != "db.operation.name=delete 1\n" {
			t.Errorf("measured %q", got)
		}
	})
	t.Run("as a part of another hold", func(t *testing.T) {
		o, tel, whole := begun(t)
		lock := report.NewLock(tel, "mutex", "", "/part")
		_, asked := lock.Acquire(t.Context())
		part := lock.Hold(asked)
		ctx := part.EndWith(whole.EndWith(t.Context(), report.Released), report.Released)
		run(ctx, tel, telemetry.Operation{Name: "delete"})
		if got := o.Values(t, held); got != "curator.recipe=mutex 0\n" {
			t.Errorf("held: %q", got)
		}
	})
	t.Run("as a part of another hold, in no trace", func(t *testing.T) {
		o, _, part := begun(t)
		untraced := newTelemetry(o, func(c *telemetry.Config) { c.TracerProvider = nooptrace.NewTracerProvider() })
		lock := report.NewLock(untraced, "multi_lock", "", "/lock")
		_, asked := lock.Acquire(t.Context())
		whole := lock.Hold(asked)
		ctx := part.EndWith(whole.EndWith(t.Context(), report.Released), report.Released)
		run(ctx, untraced, telemetry.Operation{Name: "delete"})
		if got := o.Values(t, held); got != "curator.recipe=multi_lock 0\ncurator.recipe=mutex 0\n" {
			t.Errorf("held: %q", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		o, _, hold := begun(t)
		hold.EndWith(t.Context(), report.Released)
		hold.End(report.Released)
		if got := o.Values(t, held); got != "curator.recipe=mutex 0\n" {
			t.Errorf("held: %q", got)
		}
	})
	t.Run("without a parent", func(t *testing.T) {
		var hold *report.HoldSpan
		if ctx := t.Context(); hold.EndWith(ctx, report.Released) != ctx {
			t.Error("the context is another")
		}
	})
}
