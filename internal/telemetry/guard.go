package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Later runs a call after the earlier ones, on a goroutine on which it may block. The goroutine that reads the
// connection must not block, nor the one that notifies the state listeners.
func (t *Telemetry) Later(call func()) {
	if t.cfg.Post == nil {
		call()
		return
	}
	t.cfg.Post(call)
}

// Code of the program that may panic.
const (
	inTracing    = "tracer provider"
	inMetrics    = "meter provider"
	inPropagator = "propagator"
	inDriver     = "tracer driver"
)

// caught is deferred around calls of code of the program. A panic there loses no more than one record.
func (t *Telemetry) caught(where string) {
	if p := recover(); p != nil && t.cfg.Panicked != nil {
		t.cfg.Panicked(where, p)
	}
}

// startSpan starts a span. It returns nil for one that is not recorded, and the context that it is in.
func (t *Telemetry) startSpan(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (in context.Context, span trace.Span) {
	in = ctx
	tracer := t.tracer()
	if tracer == nil {
		return ctx, nil
	}
	defer t.caught(inTracing)
	started, s := tracer.Start(ctx, name, options...)
	if s.IsRecording() {
		return started, s
	}
	s.End()
	return started, nil
}

// endSpan ends a span of startSpan, to which finish adds what is known at its end.
func (t *Telemetry) endSpan(span trace.Span, finish func(), options ...trace.SpanEndOption) {
	if span == nil {
		return
	}
	defer t.caught(inTracing)
	if finish != nil {
		finish()
	}
	span.End(options...)
}
