package leader

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
)

// pauseAfterFailure waits for a connection and then for a pause, as the failure may pass: the retries of the
// client may be exhausted, or a permission may be missing. It returns early when ctx ends or the client is closed.
func pauseAfterFailure(ctx context.Context, client *framework.Client, pause time.Duration) {
	if errors.Is(hook.AwaitConnection(ctx, client), framework.ErrClosed) {
		return
	}
	_ = waitqueue.Pause(ctx, pause)
}
