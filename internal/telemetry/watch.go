package telemetry

import (
	"context"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// eventNames are Java's names of the events of watches, in small letters.
var eventNames = map[zk.EventType]string{
	zk.EventNodeCreated:         "node_created",
	zk.EventNodeDeleted:         "node_deleted",
	zk.EventNodeDataChanged:     "node_data_changed",
	zk.EventNodeChildrenChanged: "node_children_changed",
	zk.EventSession:             "none",
}

// panicked is the error.type of a call of the program that has not returned.
const panicked = "panic"

func eventName(e zk.EventType) string {
	if name, ok := eventNames[e]; ok {
		return name
	}
	return "other"
}

// WatchEvent notes an event of a watch.
func (t *Telemetry) WatchEvent(ev zk.Event) {
	m := t.meter()
	if m == nil {
		return
	}
	ctx := context.Background() //nolint:forbidigo // no caller has a part in it
	t.add(ctx, m.watchEvents, 1, t.closedValue(eventType, eventName(ev.Type)))
}

// WatchSpans reports whether each call of a watcher has a span.
func (t *Telemetry) WatchSpans() bool { return t != nil && t.cfg.WatchSpans }

// RequestSpans reports whether each request has a span.
func (t *Telemetry) RequestSpans() bool { return t != nil && t.cfg.RequestSpans }

// Watched calls a watcher, in a span if that is wanted. The span is the root of a trace, linked to the one in which the
// watch was set, if that is known.
func (t *Telemetry) Watched(ctx context.Context, ev zk.Event, setIn trace.SpanContext, call func(context.Context)) {
	if t.tracer() == nil {
		call(ctx)
		return
	}
	name := eventName(ev.Type)
	ctx, span := t.startSpan(ctx, "watch "+name,
		trace.WithAttributes(t.withPath(t.base(eventType.String(name)), ev.Path)...),
		trace.WithLinks(appendLink(nil, setIn)...))
	returned := false
	defer t.endSpan(span, func() {
		if !returned {
			span.SetAttributes(errorType.String(panicked))
			span.SetStatus(codes.Error, "")
		}
	})
	call(ctx)
	returned = true
}

// SetIn returns the span in which a watch is set, for the link of its events: none if it is not recorded. A watcher may
// be set again elsewhere.
func (t *Telemetry) SetIn(ctx context.Context) (in trace.SpanContext) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		in = span.SpanContext()
	}
	return in
}
