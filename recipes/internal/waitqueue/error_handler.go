package waitqueue

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/gocurator/curator/internal/errtext"
)

// Reporter is a client that takes unhandled errors.
type Reporter interface {
	ReportUnhandled(ctx context.Context, message string, err error)
}

// CallErrorHandler calls the user's error handler with err. If the handler panics, CallErrorHandler reports the panic
// and err to the client. recipe names the recipe in that report.
func CallErrorHandler(
	ctx context.Context, client Reporter, recipe string, handler func(ctx context.Context, err error), err error,
) {
	defer func() {
		if p := recover(); p != nil {
			err = errtext.Wrap(err, "curator", "panic in the error handler: %s, called with", errtext.Panic(p))
			client.ReportUnhandled(ctx, recipe, err)
		}
	}()
	handler(ctx, err)
}

// Guard returns a function that calls a listener and reports its panic to the client. recipe names the recipe in that
// report.
func Guard(ctx context.Context, client Reporter, recipe string) func(fn func()) {
	return func(fn func()) {
		defer func() {
			if p := recover(); p != nil {
				err := fmt.Errorf("curator: panic in a listener: %s\n%s", errtext.Panic(p), debug.Stack())
				client.ReportUnhandled(ctx, recipe, err)
			}
		}()
		fn()
	}
}
