package queue

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// lingering is how long a queue stays watched after the last call that needs the watch: the next call may come soon.
const lingering = time.Second

// doubled returns first, doubled n times but not beyond limit.
func doubled(first, limit time.Duration, n int) time.Duration {
	for ; n > 0 && first < limit; n-- {
		first *= 2
	}
	return min(first, limit)
}

// isRefusal reports whether err is an answer about one node that an operator can change.
func isRefusal(err error) bool {
	return err != nil && !isUnanswered(err) &&
		!errors.Is(err, framework.ErrClosed) && !errors.Is(err, framework.ErrTooManyPending)
}

// isUnanswered reports whether a request that ended with err had no answer.
func isUnanswered(err error) bool {
	return waitqueue.IsOutage(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// mayBeApplied reports whether a request that ended with err, without an answer, may have taken effect.
func mayBeApplied(err error) bool { return isUnanswered(err) && !errors.Is(err, framework.ErrNotSent) }

// nudge wakes the goroutine that waits for wake, or will.
func nudge(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func isDone[V any](future builders.Future[V]) bool { return isClosed(future.Done()) }

// awaitDone waits until done is closed, and reports false if ctx ended before.
func awaitDone(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
