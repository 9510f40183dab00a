package leader

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/framework"
)

// failurePause is the pause before the next election after a failure that is not an outage.
const failurePause = time.Second

// pauseAfterFailure waits for a connection and then for failurePause, as the failure may pass: the retries of the
// client may be exhausted, or a permission may be missing. It returns early when ctx ends or the client is closed.
func pauseAfterFailure(ctx context.Context, client Client) {
	if errors.Is(client.BlockUntilConnected(ctx), framework.ErrClosed) {
		return
	}
	t := time.NewTimer(failurePause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
