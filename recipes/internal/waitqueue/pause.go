package waitqueue

import (
	"context"
	"time"
)

// FailurePause is the pause before another try after an answer that an operator, or time, may change.
const FailurePause = time.Second

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
