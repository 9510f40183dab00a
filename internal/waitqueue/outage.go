package waitqueue

import (
	"context"
	"time"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/jute"
)

// OutagePause is the pause before another try on an unstable connection.
const OutagePause = 10 * time.Millisecond

// IsOutage reports whether err only means that there was no connection or no session: a request may have taken effect.
func IsOutage(err error) bool { return jute.IsOpen(err) }

// IsPassing reports whether another try may succeed: after an outage, or after a refusal by an overloaded server.
func IsPassing(err error) bool { return jute.IsPassing(err) }

// AwaitConnection waits for a pause and a connection before another try after an error that passes. It fails with the
// error of ctx, or when the client is closed or its credentials are refused for good.
func AwaitConnection(ctx context.Context, client *framework.Client) error {
	if Pause(ctx, OutagePause) != nil {
		return ctx.Err()
	}
	return hook.AwaitConnection(ctx, client)
}

// Explain returns the error of a wait. To the plain end of ctx it adds the reason for a missing connection.
func Explain(ctx context.Context, client *framework.Client, err error) error {
	if err != nil && err == ctx.Err() {
		return hook.EndOf(ctx, client)
	}
	return err
}

// CheckOpen returns framework.ErrClosed if the client is closed or closing, else nil.
func CheckOpen(client *framework.Client) error {
	return context.Cause(hook.Closing(client))
}

// RetryPassing calls fn again as long as its error passes. It returns the last error of fn, or that of AwaitConnection.
func RetryPassing(ctx context.Context, client *framework.Client, fn func() error) error {
	for {
		err := fn()
		if !IsPassing(err) {
			return err
		}
		if err := AwaitConnection(ctx, client); err != nil {
			return err
		}
	}
}
