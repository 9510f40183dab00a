package telemetry

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Origin is where a message was sent, as it travels with it. A nil one is not known.
type Origin struct {
	propagator propagation.TextMapPropagator
	carrier    propagation.MapCarrier
	span       trace.SpanContext
}

// maxOrigin is the largest size of the trace context in a message, in bytes.
const maxOrigin = 4 << 10

// Inject returns the trace context of ctx for a message. It returns nil if that is off, or ctx has none.
func (q *Queue) Inject(ctx context.Context) []byte {
	if q.t == nil || q.t.cfg.Propagator == nil {
		return nil
	}
	defer q.t.caught(inPropagator)
	carrier := propagation.MapCarrier{}
	q.t.cfg.Propagator.Inject(ctx, carrier)
	if len(carrier) == 0 {
		return nil
	}
	data, err := json.Marshal(carrier)
	if err != nil || len(data) > maxOrigin {
		return nil
	}
	return data
}

// Extract is the inverse of Inject. It ignores what it cannot read, which must not harm the message.
func (q *Queue) Extract(data []byte) *Origin {
	if q.t == nil || q.t.cfg.Propagator == nil || len(data) == 0 || len(data) > maxOrigin {
		return nil
	}
	defer q.t.caught(inPropagator)
	o := &Origin{propagator: q.t.cfg.Propagator}
	if json.Unmarshal(data, &o.carrier) != nil || len(o.carrier) == 0 {
		return nil
	}
	ctx := o.in(context.Background()) //nolint:forbidigo // for what is in the message alone
	o.span = trace.SpanContextFromContext(ctx)
	return o
}

func (o *Origin) spanContext() trace.SpanContext {
	if o == nil {
		return trace.SpanContext{}
	}
	return o.span
}

// in returns ctx with what the origin has: its span as the remote parent, its baggage if that was sent.
func (o *Origin) in(ctx context.Context) context.Context { return o.propagator.Extract(ctx, o.carrier) }

// In returns ctx with what the origin has, if there is one, and in its trace if consumers go on with it.
func (q *Queue) In(ctx context.Context, o *Origin) (in context.Context) {
	in = ctx
	if o == nil {
		return in
	}
	defer q.t.caught(inPropagator)
	in = o.in(ctx)
	if q.t.cfg.DetachedConsumers {
		return trace.ContextWithSpan(in, trace.SpanFromContext(ctx))
	}
	return in
}
