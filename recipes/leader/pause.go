package leader

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/framework"
)

// failurePause is how long the next try to take part waits after one that failed for another reason than the
// connection.
const failurePause = time.Second

// pause waits after the retry policy has given up, or what was asked for is not allowed: another connection, or time,
// may change that.
func pause(ctx context.Context, client Client) {
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
