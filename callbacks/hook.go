package callbacks

import (
	"context"

	"github.com/go-zookeeper/zk"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/hook"
)

func init() { //nolint:gochecknoinits // for the client and recipes: the public API does not show it
	hook.InPlaceWatcher = func(fn func(ev zk.Event)) any { return &Watcher{inPlace: fn} }
	hook.Deliver = func(watcher any, ev zk.Event, dispatch func(run func(ctx context.Context))) {
		watcher.(*Watcher).deliver(ev, dispatch)
	}
	hook.MarkOfLibrary = func(watcher any) { watcher.(*Watcher).library.Store(true) }
	hook.IsOfLibrary = func(watcher any) bool { return watcher.(*Watcher).library.Load() }
	hook.NoteWatchSpan = func(watcher any, span trace.SpanContext) { watcher.(*Watcher).noteSpan(span) }
	hook.WatchSpan = func(watcher any) trace.SpanContext { return watcher.(*Watcher).lastSpan() }
}
