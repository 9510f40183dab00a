package telemetry_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/testenv/observe"
)

// A callback that begins the next operation with its own context, for ever, keeps none of those before.
func TestChainOfCallbacksDoesNotGrow(t *testing.T) {
	type wordKey struct{}
	o := observe.New(t)
	tel := newTelemetry(o)
	begun := context.WithValue(t.Context(), wordKey{}, "kept")
	next := func(ctx context.Context) context.Context {
		r := tel.Begin(ctx, telemetry.Operation{Name: "create"}, true, time.Now())
		r.End(time.Now(), telemetry.Facts{Children: -1})
		return r.Context()
	}
	first := next(begun)
	traceID := trace.SpanContextFromContext(first).TraceID()
	collected := make(chan struct{})
	runtime.SetFinalizer(first, func(context.Context) { close(collected) })
	last := next(next(first))

	patience := time.After(30 * time.Second)
	for waiting := true; waiting; {
		runtime.GC()
		select {
		case <-collected:
			waiting = false
		case <-patience:
			t.Fatal("the context of the first operation is still in use")
		default:
			runtime.Gosched()
		}
	}
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
		_ = ctx.Value(missingKey{}) // as whoever accepts an operation does
		r := tel.Begin(counted{ctx, &looks}, telemetry.Operation{Name: "create"}, true, time.Now())
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
