package telemetry

import (
	"context"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/instrument"
)

// eventNames are Java's names of the events of watches, in lower case.
var eventNames = map[zk.EventType]string{
	zk.EventNodeCreated:         "node_created",
	zk.EventNodeDeleted:         "node_deleted",
	zk.EventNodeDataChanged:     "node_data_changed",
	zk.EventNodeChildrenChanged: "node_children_changed",
	zk.EventSession:             "none",
	zk.EventNotWatching:         "persistent_watch_removed",
}

// panicked is the error.type of a call of the program that panics.
const panicked = "panic"

func eventName(e zk.EventType) string {
	if name, ok := eventNames[e]; ok {
		return name
	}
	return "other"
}

// EventType returns the attribute of the type of an event.
func EventType(e zk.EventType) attribute.KeyValue { return eventType.String(eventName(e)) }

// WatchEvent counts an event of a watch.
func (t *Telemetry) WatchEvent(ev zk.Event) {
	m := t.instruments()
	if m == nil {
		return
	}
	ctx := context.Background() //nolint:forbidigo // an event has no caller
	m.watchEvents.Add(ctx, 1, t.closedValue(eventType, eventName(ev.Type)))
}

// WatchSpans reports whether each call of a watcher has a span.
func (t *Telemetry) WatchSpans() bool { return t != nil && t.cfg.WatchSpans }

// RequestSpans reports whether each request has a span.
func (t *Telemetry) RequestSpans() bool { return t != nil && t.cfg.RequestSpans }

// Watched calls a watcher in a span. The span is linked to setIn, the span in which the watch was set, if that is
// valid.
func (t *Telemetry) Watched(ctx context.Context, ev zk.Event, setIn trace.SpanContext, call func(context.Context)) {
	if !t.Scope().Traces() {
		call(ctx)
		return
	}
	name := eventName(ev.Type)
	ctx, span := t.scope.StartSpan(ctx, "watch "+name,
		trace.WithAttributes(t.WithPath(t.scope.Base(eventType.String(name)), ev.Path)...),
		trace.WithLinks(instrument.AppendLink(nil, setIn)...))
	returned := false
	defer t.scope.EndSpan(span, func() {
		if !returned {
			span.SetAttributes(instrument.ErrorType.String(panicked))
			span.SetStatus(codes.Error, "")
		}
	})
	call(ctx)
	returned = true
}

// SetIn returns the span of ctx, in which a watch is set, for the link of its events. It is invalid if the span is not
// recorded.
func (t *Telemetry) SetIn(ctx context.Context) (in trace.SpanContext) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		in = span.SpanContext()
	}
	return in
}
