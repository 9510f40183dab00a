package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// The context of a callback is as that of context.WithoutCancel.
func TestContextOfABackgroundOperationOutlivesTheCall(t *testing.T) {
	type wordKey struct{}
	word := new(int) // package context looks for its own values with keys of this type
	for name, change := range map[string]func(*telemetry.Config){
		"traced":   func(*telemetry.Config) {},
		"measured": func(c *telemetry.Config) { c.TracerProvider = nooptrace.NewTracerProvider() },
	} {
		t.Run(name, func(t *testing.T) {
			tel := newTelemetry(observe.New(t), change)
			called, cancel := context.WithCancelCause(context.WithValue(t.Context(), wordKey{}, "kept"))
			called, stop := context.WithTimeout(context.WithValue(called, word, "kept"), time.Hour)
			defer stop()
			ctx := begin(called, tel, telemetry.Operation{Name: "create"}, true).Context()
			cancel(errors.New("the call is over"))
			if _, ends := ctx.Deadline(); ends || ctx.Done() != nil || ctx.Err() != nil || context.Cause(ctx) != nil {
				t.Errorf("it ends: %v, %v", ctx.Err(), context.Cause(ctx))
			}
			if ctx.Value(wordKey{}) != "kept" || ctx.Value(word) != "kept" {
				t.Error("values are lost")
			}
			below, stop := context.WithCancel(ctx)
			if below.Err() != nil {
				t.Errorf("a context below has ended: %v", below.Err())
			}
			stop()
			if below.Err() == nil {
				t.Error("a context below does not end")
			}
		})
	}
}

// The SDK allocates three times for a span that it drops: the attributes, the context and the span.
func TestOperationThatIsNotSampledAllocatesOnlyItsRecord(t *testing.T) {
	o := observe.New(t, sdktrace.ParentBased(sdktrace.NeverSample()))
	tel := newTelemetry(o)
	called, cancel := context.WithCancel(t.Context())
	defer cancel()
	what := telemetry.Operation{Name: "getData", Path: "/a"}
	allocations := testing.AllocsPerRun(100, func() { run(called, tel, what, true, nil) })
	if allocations > 4 {
		t.Errorf("%v allocations", allocations)
	}
}
