package report

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/usercode"
)

// Origin is the trace context of a put, which the node of the item contains. A nil Origin means that there is none.
type Origin struct {
	propagator propagation.TextMapPropagator
	carrier    propagation.MapCarrier
	span       trace.SpanContext
}

// inPropagator names the propagator in the report of a panic.
const inPropagator = "propagator"

// maxOrigin is the largest size of the trace context of a node, in bytes.
const maxOrigin = 4 << 10

// Inject returns the bytes of the trace context of ctx for a node. It returns nil without a propagator, or if ctx has
// no trace context.
func (q *Queue) Inject(ctx context.Context) []byte {
	if q.t == nil || q.t.Config().Propagator == nil {
		return nil
	}
	defer usercode.Report(inPropagator, q.t.Config().Panicked)
	carrier := propagation.MapCarrier{}
	q.t.Config().Propagator.Inject(ctx, carrier)
	if len(carrier) == 0 {
		return nil
	}
	data, err := json.Marshal(carrier)
	if err != nil || len(data) > maxOrigin {
		return nil
	}
	return data
}

// Extract is the inverse of Inject. It ignores bytes that it cannot read, so that the item is delivered.
func (q *Queue) Extract(data []byte) *Origin {
	if q.t == nil || q.t.Config().Propagator == nil || len(data) == 0 || len(data) > maxOrigin {
		return nil
	}
	defer usercode.Report(inPropagator, q.t.Config().Panicked)
	o := &Origin{propagator: q.t.Config().Propagator}
	if json.Unmarshal(data, &o.carrier) != nil || len(o.carrier) == 0 {
		return nil
	}
	ctx := o.in(context.Background()) //nolint:forbidigo // only the trace context of the node
	o.span = trace.SpanContextFromContext(ctx)
	return o
}

func (o *Origin) spanContext() trace.SpanContext {
	if o == nil {
		return trace.SpanContext{}
	}
	return o.span
}

// in returns ctx with the span of the put as the remote parent, and with the baggage of the put if it was sent.
func (o *Origin) in(ctx context.Context) context.Context { return o.propagator.Extract(ctx, o.carrier) }

// In returns ctx with the baggage of the put, and in its trace if consumers continue that trace. A nil origin leaves
// ctx unchanged.
func (q *Queue) In(ctx context.Context, o *Origin) (in context.Context) {
	in = ctx
	if o == nil {
		return in
	}
	defer usercode.Report(inPropagator, q.t.Config().Panicked)
	in = o.in(ctx)
	if q.t.Config().DetachedConsumers {
		return trace.ContextWithSpan(in, trace.SpanFromContext(ctx))
	}
	return in
}
