package waitqueue

import (
	"context"
	"errors"
	"time"
)

// Retry calls attempt again while it fails with [ErrNodeLost]. From the second call on it also retries outages, unless
// wait is 0: the next attempt starts when there is a connection. A positive wait bounds the context of attempt; Retry
// fails with [ErrNotAcquired] when it is over.
func Retry[T any](
	ctx context.Context, client Client, wait time.Duration, attempt func(ctx context.Context) (T, error),
) (T, error) {
	bounded := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	for retried := false; ; retried = true {
		result, err := attempt(bounded)
		if errors.Is(err, ErrNodeLost) {
			continue
		}
		if retried && wait != 0 && IsOutage(err) {
			if err = client.BlockUntilConnected(bounded); err == nil {
				continue
			}
		}
		if errors.Is(err, context.DeadlineExceeded) && bounded.Err() != nil && ctx.Err() == nil { // wait is over
			err = ErrNotAcquired
		}
		return result, err
	}
}
