package lineup

import (
	"context"
	"errors"
	"time"
)

// Retry calls attempt until it returns something other than [ErrGone]. After that error an outage does not end the
// wait either, unless wait is 0: the next attempt begins when there is a connection. The context of attempt ends after
// wait, if that is positive; then the error is [ErrNotAcquired].
func Retry[T any](
	ctx context.Context, client Client, wait time.Duration, attempt func(ctx context.Context) (T, error),
) (T, error) {
	bounded := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	for again := false; ; again = true {
		result, err := attempt(bounded)
		if errors.Is(err, ErrGone) {
			continue
		}
		if again && wait != 0 && IsOutage(err) {
			if err = client.BlockUntilConnected(bounded); err == nil {
				continue
			}
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // the end of wait
			err = ErrNotAcquired
		}
		return result, err
	}
}
