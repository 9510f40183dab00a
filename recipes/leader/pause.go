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
// client may be exhausted, or a permission may be missing. It returns early when ctx ends, and with framework.ErrClosed
// when the client is closed: it never connects again, whatever the failure was.
func pauseAfterFailure(ctx context.Context, client *framework.Client, pause time.Duration) error {
	if err := hook.AwaitConnection(ctx, client); errors.Is(err, framework.ErrClosed) {
		return err
	}
	_ = waitqueue.Pause(ctx, pause)
	return nil
}
