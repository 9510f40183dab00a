package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// opContext holds the telemetry settings of a context. It is one value of the context: an operation looks it up once.
type opContext struct {
	untraced bool // without spans
	expected bool // the caller handles answers about the state of nodes
	links    []trace.Link
	ending   func() // records what ends with the operation
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

// Untraced returns a context whose operations have no spans of their own. The inner work of a recipe that runs by
// itself would make thousands of traces of one span each. Its operations are measured all the same.
func Untraced(ctx context.Context) context.Context { return withoutSpans.in(ctx) }

// WithoutSpans is [Untraced] for the inner work of an operation that a caller waits for. It costs nothing while tracing
// is off.
func (t *Telemetry) WithoutSpans(ctx context.Context) context.Context {
	if t.tracer() == nil {
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

// Traced returns ctx with the span of another context as the parent of what is done with it.
func Traced(ctx, parent context.Context) context.Context {
	return expecting.in(trace.ContextWithSpan(ctx, trace.SpanFromContext(parent)))
}

// TracedOr returns ctx, in the trace of another context if it is in none itself.
func TracedOr(ctx, other context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() || !trace.SpanContextFromContext(other).IsValid() {
		return ctx
	}
	return Traced(ctx, other)
}

// WithLinks returns a context whose next operation is caused by the spans of several others: it is linked to all that
// are sampled. Without any it is as with ctx.
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

// appendLink adds a link to a span, if there is one.
func appendLink(links []trace.Link, to trace.SpanContext) []trace.Link {
	if !to.IsValid() {
		return links
	}
	return append(links, trace.Link{SpanContext: to})
}

// traces reports whether an operation has a span of its own. What a recipe does in a span that was dropped is not
// offered to the sampler: the trace would have parts of what it lacks.
func (c *opContext) traces(ctx context.Context) bool {
	return !c.untraced && !(c.expected && isDropped(ctx))
}

// isDropped reports whether the sampler of this process has dropped the span of ctx.
func isDropped(ctx context.Context) bool {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		return false
	}
	in := span.SpanContext()
	return in.IsValid() && !in.IsSampled() && !in.IsRemote()
}

// start starts the span of the operation of r, and puts it into the context of what the operation causes.
func (c *opContext) start(ctx context.Context, r *Record) {
	name, options := r.t.spans(r.op, r.what.Name, r.what.Namespace)
	if !r.background { // that begins now
		options = append(slices.Clip(options), trace.WithTimestamp(r.start))
	}
	if c.links != nil {
		options = append(slices.Clip(options), trace.WithLinks(c.links...))
		ctx = expecting.in(ctx) // those of the next operation are its own
	}
	under := ctx
	chain, inChain := ctx.(*caused)
	if inChain {
		ctx, under = chain.Context, chain.under
	}
	ctx, r.span = r.t.startSpan(ctx, name, options...)
	if inChain { // with the span also if it was dropped
		ctx = trace.ContextWithSpan(under, trace.SpanFromContext(ctx))
	}
	r.cause.Context = ctx
	if r.background {
		r.cause.under = under
	}
}
