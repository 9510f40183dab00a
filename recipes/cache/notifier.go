package cache

import (
	"context"
	"time"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// notifier calls listeners one at a time and in order, until it is closed.
type notifier struct {
	client Client
	recipe string // the name in error reports
	calls  waitqueue.Serial
	ctx    context.Context // ends with close
	cancel context.CancelFunc
}

// maxCloseWait bounds the time for which Close waits for the listener call that is under way.
const maxCloseWait = time.Second

func newNotifier(client Client, recipe string) *notifier {
	n := &notifier{client: client, recipe: recipe}
	root := context.Background() //nolint:forbidigo // close cancels it
	n.ctx, n.cancel = context.WithCancel(telemetry.Of(client).WithoutSpans(root))
	return n
}

// do runs fn after the earlier funcs, unless the notifier is closed by then.
func (n *notifier) do(fn func(ctx context.Context)) {
	n.calls.Do(func() {
		if n.ctx.Err() == nil {
			fn(context.WithoutCancel(n.ctx))
		}
	})
}

// call calls one listener, unless the notifier is closed. A panic is reported, and later calls go on.
func (n *notifier) call(listener func()) {
	if n.ctx.Err() == nil {
		waitqueue.Guard(context.WithoutCancel(n.ctx), n.client, n.recipe)(listener)
	}
}

// close stops the calls. It waits at most maxCloseWait for the call that is under way. When a listener calls it, it
// does not wait.
func (n *notifier) close() {
	n.cancel()
	if n.calls.IsCaller() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), maxCloseWait)
	defer cancel()
	n.calls.Wait(ctx, 0)
}
