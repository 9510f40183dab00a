package hook

import (
	"context"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/trace"
)

// Package callbacks sets these. A watcher is a *callbacks.Watcher.
var (
	// InPlaceWatcher returns a watcher that calls fn on the goroutine that reads the connection: in the order of the
	// events, and before an answer that came after them is given to anybody. fn must not block.
	InPlaceWatcher func(fn func(ev zk.Event)) (watcher any)
	// Deliver hands ev to a watcher: to its channel at once, to its function through dispatch.
	Deliver func(watcher any, ev zk.Event, dispatch func(run func(ctx context.Context)))
	// NoteWatchSpan notes the span in which a watcher was set last.
	NoteWatchSpan func(watcher any, span trace.SpanContext)
	// WatchSpan returns the span that NoteWatchSpan has noted last, an invalid one without any.
	WatchSpan func(watcher any) trace.SpanContext
)
