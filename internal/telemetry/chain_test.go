package telemetry_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// A callback that begins the next operation with its own context, for ever, keeps none of those before.
func TestChainOfCallbacksDoesNotGrow(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{
		"sampled": sdktrace.AlwaysSample(), "dropped": sdktrace.NeverSample(),
	} {
		t.Run(name, func(t *testing.T) {
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
			tel := telemetry.New(telemetry.Config{TracerProvider: tracers, MeterProvider: noop.NewMeterProvider()})
			ctx := t.Context()
			step := func() {
				r := begin(ctx, tel, telemetry.Operation{Name: "create"}, true)
				r.End(time.Now(), telemetry.Facts{Children: -1})
				ctx = r.Context()
			}
			step()
			before := inUse()
			for range 20_000 {
				step()
			}
			if grown := inUse() - before; grown > 1<<20 { // a kept context would have at least 100 bytes
				t.Errorf("%d bytes are kept", grown)
			}
			runtime.KeepAlive(ctx)
		})
	}
}

// inUse returns the bytes of the heap that are in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestChainOfCallbacksIsOneTrace(t *testing.T) {
	type wordKey struct{}
	o := observe.New(t)
	tel := newTelemetry(o)
	begun := context.WithValue(t.Context(), wordKey{}, "kept")
	next := func(ctx context.Context) context.Context {
		r := begin(ctx, tel, telemetry.Operation{Name: "create"}, true)
		r.End(time.Now(), telemetry.Facts{Children: -1})
		return r.Context()
	}
	first := next(begun)
	traceID := trace.SpanContextFromContext(first).TraceID()
	last := next(next(first))
	if last.Value(wordKey{}) != "kept" || trace.SpanContextFromContext(last).TraceID() != traceID {
		t.Errorf("what the chain began with is lost: %v", last.Value(wordKey{}))
	}
	spans := o.Spans()
	for i, span := range spans[1:] {
		if span.Parent().SpanID() != spans[i].SpanContext().SpanID() {
			t.Errorf("the parent of operation %d is not the one before", i+1)
		}
	}
}

// counted counts the looks that come down to it.
type counted struct {
	context.Context
	looks *int
}

func (c counted) Value(key any) any {
	*c.looks++
	return c.Context.Value(key)
}

// A chain of callbacks that begin spans of their own looks as far at its end as at its beginning.
func TestChainThroughSpansOfTheProgramCostsTheSameAtEachStep(t *testing.T) {
	o := observe.New(t)
	tel := newTelemetry(o)
	type missingKey struct{}
	looks := 0
	next := func(ctx context.Context) context.Context {
		ctx, span := o.Start(ctx, "step")
		defer span.End()
		_ = ctx.Value(missingKey{}) // as an operation does when it is accepted
		r := begin(counted{ctx, &looks}, tel, telemetry.Operation{Name: "create"}, true)
		r.End(time.Now(), telemetry.Facts{Children: -1})
		return r.Context()
	}
	ctx := t.Context()
	var each []int
	for range 40 {
		looks = 0
		ctx = next(ctx)
		each = append(each, looks)
	}
	if first, last := each[5], each[39]; last > 2*first {
		t.Errorf("%d looks at step 5, %d at step 39", first, last)
	}
}
