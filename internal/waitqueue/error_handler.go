package waitqueue

import (
	"context"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/usercode"
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
	if panicked := usercode.Call("the error handler", func() { handler(ctx, err) }); panicked != nil {
		client.ReportUnhandled(ctx, recipe, errtext.Wrap(errtext.Join(err, panicked), "curator", ""))
	}
}

// Guard returns a function that calls a listener and reports its panic to the client. recipe names the recipe in that
// report.
func Guard(ctx context.Context, client Reporter, recipe string) func(fn func()) {
	return func(fn func()) {
		if panicked := usercode.Call("a listener", fn); panicked != nil {
			client.ReportUnhandled(ctx, recipe, panicked)
		}
	}
}
