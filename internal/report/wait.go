package report

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

// Wait is a wait of a recipe, from the call to its return. Its span contains the requests of the wait. All methods of a
// nil Wait do nothing.
type Wait struct {
	of          *resource
	instruments func(*instrument.Scope) waitInstruments
	waiting     *instrument.UpDownCounter // counted the beginning, and counts the end; nil if metrics were off
	caller      context.Context           // the context of the call
	ctx         context.Context           // caller with the span of the wait
	span        trace.Span                // nil if it is not recorded
	start       time.Time
}

// waitInstruments are the instruments of a wait. Either may be nil.
type waitInstruments struct {
	duration *instrument.Histogram
	waiting  *instrument.UpDownCounter
}

// wait begins a wait in a span of that name.
func (r *resource) wait(
	ctx context.Context, name string, instruments func(*instrument.Scope) waitInstruments,
	options ...trace.SpanStartOption,
) (context.Context, *Wait) {
	if !r.on() {
		return ctx, nil
	}
	w := &Wait{of: r, instruments: instruments, caller: ctx, start: time.Now()}
	ctx, w.span = r.scope().StartSpan(ctx, name, r.with(options)...)
	w.ctx = ctx
	if w.waiting = instruments(r.scope()).waiting; w.waiting != nil {
		w.waiting.Add(ctx, 1, r.measures().all)
	}
	return ctx, w
}

// with returns the options of the spans of r followed by more.
func (r *resource) with(more []trace.SpanStartOption) []trace.SpanStartOption {
	if len(more) == 0 {
		return r.measures().start
	}
	return append(slices.Clip(r.measures().start), more...)
}

// IsRecording reports whether the wait has a span.
func (w *Wait) IsRecording() bool { return w != nil && w.span != nil }

// set adds attributes to the span of the wait.
func (w *Wait) set(attributes ...attribute.KeyValue) {
	if w.IsRecording() {
		w.span.SetAttributes(attributes...)
	}
}

// End records the end of the wait. Only the outcome [Failed] is an error of the span.
func (w *Wait) End(outcome string, err error) {
	if w == nil {
		return
	}
	if w.waiting != nil {
		w.waiting.Add(w.ctx, -1, w.of.measures().all)
	}
	if duration := w.instruments(w.of.scope()).duration; duration != nil {
		duration.Record(w.ctx, time.Since(w.start).Seconds(), w.of.measures().outcomes.Get(outcome))
	}
	w.of.scope().EndSpan(w.span, func() {
		w.span.SetAttributes(telemetry.OutcomeKey.String(outcome))
		if outcome == Failed && err != nil {
			w.span.SetAttributes(instrument.ErrorType.String(telemetry.ErrorType(err)))
			w.span.SetStatus(codes.Error, "") // the text of the error may contain the path
		}
	})
}
