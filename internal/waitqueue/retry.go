package waitqueue

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/framework"
)

// Retry calls attempt again while it fails with [ErrNodeLost]. From the second call on it also retries errors that
// pass, unless wait is 0: the next attempt starts when there is a connection. A positive wait bounds the context of
// attempt, and Retry fails with [ErrNotAcquired] when the wait is over.
func Retry[T any](
	ctx context.Context, client *framework.Client, wait time.Duration, attempt func(ctx context.Context) (T, error),
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
		if retried && wait != 0 && IsPassing(err) {
			if err = AwaitConnection(bounded, client); err == nil {
				continue
			}
		}
		if errors.Is(err, context.DeadlineExceeded) && bounded.Err() != nil && ctx.Err() == nil { // wait is over
			err = ErrNotAcquired
		}
		return result, err
	}
}
