package waitqueue

import (
	"context"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
)

// Unwatch removes a watch that may not have fired, in the background, and retries until that succeeds.
func Unwatch(ctx context.Context, client *framework.Client, w *callbacks.Watcher, path string) {
	ctx = hook.Telemetry(client).WithoutSpans(ctx)
	_ = ForLibrary(client).Watches().Remove(w).Guaranteed().Quietly().InBackground(Ignore).ForPath(ctx, path)
}

// ForLibrary returns a view of a client for the library itself: see hook.ForLibrary.
func ForLibrary(client *framework.Client) *framework.Client {
	view, _ := hook.ForLibrary(client).(*framework.Client)
	return view
}

// Ignore discards a background result. A closed client refuses the operation; its session then ends, and with it all
// nodes and watches.
func Ignore(context.Context, callbacks.Event) {}
