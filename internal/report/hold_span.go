package report

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
	"github.com/gocurator/curator/internal/telemetry"
)

// HoldSpan is the time for which a client holds a lock or leads. Its span is written at the end with its true start, so
// that no span is open while the program works. All methods of a nil HoldSpan do nothing.
type HoldSpan struct {
	of       *resource
	parent   context.Context
	link     trace.SpanContext // the span of the wait
	name     string
	dropped  bool // the sampler dropped the span of the wait, so the hold has none
	start    time.Time
	duration *instrument.Histogram // nil if metrics were off at the start
	count    func(h *HoldSpan, n int, outcome string)
	over     atomic.Bool
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
	at := time.Now()
	return telemetry.Ending(ctx, h.parent, func() { h.end(outcome, at) })
}

func (h *HoldSpan) end(outcome string, at time.Time) {
	if h.over.Swap(true) {
		return
	}
	if h.duration != nil {
		h.count(h, -1, outcome)
		h.duration.Record(h.parent, at.Sub(h.start).Seconds(), h.of.measures().outcomes.Get(outcome))
	}
	if h.dropped || !h.of.scope().Traces() {
		return
	}
	if outcome == Lost { // this may be a goroutine that must not block
		h.of.t.Later(func() { h.write(outcome, at) })
		return
	}
	h.write(outcome, at)
}

// write writes the span of a hold that ended at a time.
func (h *HoldSpan) write(outcome string, at time.Time) {
	scope := h.of.scope()
	_, span := scope.StartSpan(h.parent, h.name, h.of.measures().start[0], trace.WithTimestamp(h.start),
		trace.WithLinks(instrument.AppendLink(nil, h.link)...))
	scope.EndSpan(span, func() { span.SetAttributes(telemetry.OutcomeKey.String(outcome)) }, trace.WithTimestamp(at))
}
