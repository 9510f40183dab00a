package reply

import (
	"context"
	"errors"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// IsRefusal reports whether err is an answer about one node that an operator can change.
func IsRefusal(err error) bool {
	return err != nil && !IsUnanswered(err) && !IsThrottled(err) &&
		!IsClientClosed(err) && !errors.Is(err, framework.ErrTooManyPending)
}

// IsUnanswered reports whether a request that ended with err had no answer.
func IsUnanswered(err error) bool {
	return waitqueue.IsOutage(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// IsThrottled reports whether the server has answered that it did not begin with a request, because it has too much to
// do.
func IsThrottled(err error) bool { return waitqueue.IsPassing(err) && !waitqueue.IsOutage(err) }

// IsClientClosed reports whether err says that the client is closed, and not only the queue.
func IsClientClosed(err error) bool {
	return errors.Is(err, framework.ErrClosed) && !errors.Is(err, node.ErrClosed)
}

// MayBeApplied reports whether a request that ended with err, without an answer, may have taken effect.
func MayBeApplied(err error) bool { return IsUnanswered(err) && !errors.Is(err, framework.ErrNotSent) }

// IsUncertain reports whether a request sent with Once may or may not have taken effect after err.
func IsUncertain(ctx context.Context, err error) bool {
	if errors.Is(err, framework.ErrNotSent) {
		return false
	}
	return waitqueue.IsOutage(err) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
