package telemetry

import (
	"context"
	"slices"
	"sync"

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
	if m, ok := ctx.Value(opContextKey{}).(*opContext); ok {
		return m
	}
	return usual
}

func (m *opContext) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, opContextKey{}, m)
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

// caused is the context of what a background operation causes: with its span, and without what it was called with. A
// callback calls the next operation with it, whose callback the next: were each context on top of the last, a chain
// that never ends would never end in memory.
//
// With spans of the program in between, the contexts of a chain are the program's, and each on top of the last. They
// remember the last lookups: a lookup costs the same at every step, however long the chain.
type caused struct {
	context.Context
	under context.Context // without any span of the chain

	mu    sync.Mutex
	known [4]lookup
	next  int // in known
}

type lookup struct{ key, value any }

// Value returns the value of a key.
func (c *caused) Value(key any) any {
	c.mu.Lock()
	for i := range c.known {
		if c.known[i].key == key {
			value := c.known[i].value
			c.mu.Unlock()
			return value
		}
	}
	c.mu.Unlock()
	value := c.Context.Value(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[c.next] = lookup{key, value}
	c.next = (c.next + 1) % len(c.known)
	return value
}

// traces reports whether an operation has a span of its own. What a recipe does in a span that was dropped is not
// offered to the sampler: the trace would have parts of what it lacks.
func (m *opContext) traces(ctx context.Context) bool {
	return !m.untraced && !(m.expected && isDropped(ctx))
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

// start starts the span of an operation. It returns the context of what the operation causes.
func (m *opContext) start(ctx context.Context, r *Record) (context.Context, trace.Span) {
	background := r.background
	name, options := r.t.spans(r.op, r.what.Name, r.what.Namespace)
	options = slices.Clip(options)
	if !background { // that begins now
		options = append(options, trace.WithTimestamp(r.start))
	}
	if m.links != nil {
		options = append(options, trace.WithLinks(m.links...))
		m = expecting // those of the next operation are its own
		ctx = m.in(ctx)
	}
	chain, inChain := ctx.(*caused)
	if background && !inChain {
		// Each look into a context without an end allocates, and a tracer takes some: a value in front spares them that.
		ctx = m.in(ctx)
	}
	under := ctx
	if inChain {
		under = chain.under
	}
	ctx, span := r.t.startSpan(ctx, name, options...)
	if inChain { // with the span also if it was dropped
		ctx = trace.ContextWithSpan(under, trace.SpanFromContext(ctx))
	}
	if background {
		r.cause.Context, r.cause.under = ctx, under
		ctx = &r.cause
	}
	return ctx, span
}
