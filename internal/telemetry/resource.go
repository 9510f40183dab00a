package telemetry

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// The outcomes of waits and of what they led to.
const (
	Acquired    = "acquired"
	Elected     = "elected"
	Passed      = "passed"
	Timeout     = "timeout"
	Canceled    = "canceled"
	Lost        = "lost"
	Failed      = "error"
	Released    = "released"
	EndedClosed = "closed"
	Interrupted = "interrupted"
	Returned    = "returned"
	Taken       = "taken"
)

// Outcome is how a wait has ended: as wanted, by the end of its context, or with an error.
func Outcome(err error, wanted string) string {
	switch {
	case err == nil:
		return wanted
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Canceled
	case ErrorType(err) == errorClosed:
		return EndedClosed
	}
	return Failed
}

// resource is the object of a recipe: a lock, an election, a barrier. Its series are made at the first use while
// telemetry is on.
type resource struct {
	t                  *Telemetry
	recipe, name, path string // name is the name that the user gives it, or ""
	participant        string // of an election: the name that the user gives it, or ""
	made               atomic.Pointer[measures]
}

// measures are the spans and measurements of a resource.
type measures struct {
	*series
	start []trace.SpanStartOption // of its spans
}

// measures returns the spans and measurements of r. It is called while telemetry is on.
func (r *resource) measures() *measures {
	if w := r.made.Load(); w != nil {
		return w
	}
	attributes := r.t.base(recipeKey.String(r.recipe))
	if r.name != "" {
		attributes = append(attributes, resourceName.String(r.name))
	}
	if r.participant != "" {
		attributes = append(attributes, participantKey.String(r.participant))
	}
	w := &measures{
		series: r.t.seriesWith(seriesKey{r.recipe, r.name, r.participant}),
		start:  []trace.SpanStartOption{trace.WithAttributes(r.t.withPath(attributes, r.path)...)},
	}
	r.made.Store(w)
	return w
}

func (r *resource) on() bool { return r.t.On() }

// Wait is a wait of a recipe, from the call to its return: a span around all that is done for it, and its duration. A
// nil one takes everything and does nothing.
type Wait struct {
	of        *resource
	caller    context.Context // in which the wait was asked for
	ctx       context.Context
	span      trace.Span // nil if it is not recorded
	start     time.Time
	durations func(*instruments) metric.Float64Histogram
	waiting   metric.Int64UpDownCounter // that has counted the beginning, nil for none
}

// waitMetrics selects the instruments of a wait. Either may be nil.
type waitMetrics struct {
	durations func(*instruments) metric.Float64Histogram
	waiting   func(*instruments) metric.Int64UpDownCounter
}

// wait begins a wait in a span of that name.
func (r *resource) wait(
	ctx context.Context, name string, of waitMetrics, options ...trace.SpanStartOption,
) (context.Context, *Wait) {
	if !r.on() {
		return ctx, nil
	}
	w := &Wait{of: r, caller: ctx, start: time.Now(), durations: of.durations}
	ctx, w.span = r.t.startSpan(ctx, name, r.with(options)...)
	w.ctx = ctx
	if m := r.t.meter(); m != nil && of.waiting != nil {
		w.waiting = of.waiting(m)
		r.t.addUpDown(ctx, w.waiting, 1, r.measures().all)
	}
	return ctx, w
}

// with returns the options of a span with more of them.
func (r *resource) with(more []trace.SpanStartOption) []trace.SpanStartOption {
	if len(more) == 0 {
		return r.measures().start
	}
	return append(slices.Clip(r.measures().start), more...)
}

// IsSeen reports whether anybody will see more of the wait than how long it took.
func (w *Wait) IsSeen() bool { return w != nil && w.span != nil }

// set adds an attribute to the span of the wait.
func (w *Wait) set(attributes ...attribute.KeyValue) {
	if w.IsSeen() {
		w.span.SetAttributes(attributes...)
	}
}

// End records how the wait has ended. Only an outcome [Failed] is an error: the others are what may come of a wait.
func (w *Wait) End(outcome string, err error) {
	if w == nil {
		return
	}
	if w.waiting != nil {
		w.of.t.addUpDown(w.ctx, w.waiting, -1, w.of.measures().all)
	}
	if m := w.of.t.meter(); m != nil && w.durations != nil {
		w.of.t.record(w.ctx, w.durations(m), time.Since(w.start).Seconds(), w.of.measures().outcomes.get(outcome))
	}
	w.of.t.endSpan(w.span, func() {
		w.span.SetAttributes(outcomeKey.String(outcome))
		if outcome == Failed && err != nil {
			w.span.SetAttributes(errorType.String(ErrorType(err)))
			w.span.SetStatus(codes.Error, "") // the text of the error may hold the path
		}
	})
}

// HoldSpan is the time in which a client has what it waited for. It is recorded at its end, as a whole, so that no span
// is open in a time that the user owns. All methods of a nil one do nothing.
type HoldSpan struct {
	of        *resource
	metrics   *instruments // that have counted the beginning, nil for none
	parent    context.Context
	link      trace.SpanContext
	name      string
	dropped   bool // it has no span, as what led to it
	start     time.Time
	ended     func(h *HoldSpan, outcome string) // counts the end
	durations func(*instruments) metric.Float64Histogram
	over      atomic.Bool
}

// End records the hold. Only the first call has an effect.
func (h *HoldSpan) End(outcome string) {
	if h != nil {
		h.end(outcome, time.Now())
	}
}

// EndWith returns a context for the operation that ends the hold. The hold is recorded while the request is under way,
// so the next holder does not wait for that. The operation is in the trace of ctx, or in that of the hold if ctx has
// none. The caller also calls End afterwards, because the operation may be refused.
func (h *HoldSpan) EndWith(ctx context.Context, outcome string) context.Context {
	if h == nil {
		return ctx
	}
	settings, at := *opContextOf(ctx), time.Now()
	settings.expected = true
	whole := settings.ending // of which this is a part, nil for nothing
	settings.ending = func() {
		if whole != nil {
			whole()
		}
		h.end(outcome, at)
	}
	return settings.in(TracedOr(ctx, h.parent))
}

func (h *HoldSpan) end(outcome string, at time.Time) {
	if h.over.Swap(true) {
		return
	}
	if m := h.metrics; m != nil {
		h.ended(h, outcome)
		h.of.t.record(h.parent, h.durations(m), at.Sub(h.start).Seconds(), h.of.measures().outcomes.get(outcome))
	}
	if h.dropped || h.of.t.tracer() == nil {
		return
	}
	if outcome == Lost { // which may be recorded on a goroutine that others wait for
		h.of.t.Later(func() { h.write(outcome, at) })
		return
	}
	h.write(outcome, at)
}

// write writes the span of a tenure that ended at a time.
func (h *HoldSpan) write(outcome string, at time.Time) {
	t := h.of.t
	_, span := t.startSpan(h.parent, h.name, h.of.measures().start[0], trace.WithTimestamp(h.start),
		trace.WithLinks(appendLink(nil, h.link)...))
	t.endSpan(span, func() { span.SetAttributes(outcomeKey.String(outcome)) }, trace.WithTimestamp(at))
}
