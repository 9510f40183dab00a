package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
)

// opContext holds the telemetry settings of a context. It is one value of the context: an operation looks it up once.
type opContext struct {
	untraced bool         // operations have no spans
	expected bool         // the caller handles answers about the state of nodes
	links    []trace.Link // the links of the next operation; later ones have none
	ending   func()       // records the end of a hold; called while the request is under way
}

var (
	usual        = &opContext{}
	expecting    = &opContext{expected: true}
	withoutSpans = &opContext{expected: true, untraced: true}
)

type opContextKey struct{}

func opContextOf(ctx context.Context) *opContext {
	if c, ok := ctx.Value(opContextKey{}).(*opContext); ok {
		return c
	}
	return usual
}

func (c *opContext) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, opContextKey{}, c)
}

// Untraced returns a context whose operations have no spans. They are measured. The background work of a recipe uses
// it: every operation would be a trace of one span.
func Untraced(ctx context.Context) context.Context { return withoutSpans.in(ctx) }

// WithoutSpans is [Untraced] for the inner work of an operation that a caller waits for. It costs nothing while tracing
// is off.
func (t *Telemetry) WithoutSpans(ctx context.Context) context.Context {
	if !t.Scope().Traces() {
		return ctx
	}
	return Untraced(ctx)
}

// ExpectingErrors returns a context for a caller that handles the server's answers about the state of nodes. Such an
// answer, for example that a node does not exist, is no error of the operation. It costs nothing while telemetry is
// off.
func (t *Telemetry) ExpectingErrors(ctx context.Context) context.Context {
	if !t.On() || opContextOf(ctx).expected {
		return ctx
	}
	return expecting.in(ctx)
}

// Traced returns ctx with the span of another context as the parent of its operations.
func Traced(ctx, parent context.Context) context.Context {
	return expecting.in(trace.ContextWithSpan(ctx, trace.SpanFromContext(parent)))
}

// TracedOr returns ctx, or Traced(ctx, other) if ctx is in no trace.
func TracedOr(ctx, other context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() || !trace.SpanContextFromContext(other).IsValid() {
		return ctx
	}
	return Traced(ctx, other)
}

// Ending returns a context for an operation that ends something. It calls ended while the request is under way, or not
// at all if the operation is refused. The operation is in the trace of ctx, or in that of other if ctx has none.
func Ending(ctx, other context.Context, ended func()) context.Context {
	settings := *opContextOf(ctx)
	settings.expected = true
	outer := settings.ending
	settings.ending = func() {
		if outer != nil {
			outer()
		}
		ended()
	}
	return settings.in(TracedOr(ctx, other))
}

// WithLinks returns a context whose next operation is linked to the sampled spans of several contexts. Without a
// sampled span it returns ctx.
func WithLinks(ctx context.Context, causes ...context.Context) context.Context {
	var links []trace.Link
	for _, cause := range causes {
		if span := trace.SpanContextFromContext(cause); span.IsSampled() {
			links = append(links, trace.Link{SpanContext: span})
		}
	}
	if len(links) == 0 {
		return ctx
	}
	return (&opContext{expected: true, links: links}).in(ctx)
}

// traces reports whether an operation has a span. If the sampler has dropped the span of a recipe, the operations of
// the recipe have none either: their spans would have no parent in the trace.
func (c *opContext) traces(ctx context.Context) bool {
	return !c.untraced && !(c.expected && instrument.IsDropped(ctx))
}

// start starts the span of r's operation, and sets the context of r.
func (c *opContext) start(ctx context.Context, r *Record) {
	name, options := r.t.spans(r.op, r.what.Name, r.what.Namespace)
	if !r.background { // the span of a background operation begins now
		options = append(slices.Clip(options), trace.WithTimestamp(r.start))
	}
	if c.links != nil {
		options = append(slices.Clip(options), trace.WithLinks(c.links...))
		ctx = expecting.in(ctx) // later operations do not have these links
	}
	under := ctx
	chain, inChain := ctx.(*caused)
	if inChain {
		ctx, under = chain.Context, chain.under
	}
	ctx, r.span = r.t.scope.StartSpan(ctx, name, options...)
	if inChain { // the context has the span even if it was dropped
		ctx = trace.ContextWithSpan(under, trace.SpanFromContext(ctx))
	}
	r.cause.Context = ctx
	if r.background {
		r.cause.under = under
	}
}
