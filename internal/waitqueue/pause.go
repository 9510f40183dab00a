package waitqueue

import (
	"context"
	"time"
)

// FailurePause is the pause before another try after an error of the server, such as a missing permission.
const FailurePause = time.Second

// maxReadPause bounds ReadPause.
const maxReadPause = 5 * time.Second

// ReadPause returns the pause before the next read that is to watch a node. failures is the number of failed reads in a
// row, for example because the permission is missing.
func ReadPause(failures int) time.Duration {
	return min(FailurePause<<min(failures-1, 10), maxReadPause)
}

// Pause waits for d. It returns the cause of the end of ctx if that comes first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
