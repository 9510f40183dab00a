package lineup

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/gocurator/curator/internal/errtext"
)

// Reporter is a client that takes what nobody else is told of.
type Reporter interface {
	ReportUnhandled(ctx context.Context, message string, err error)
}

// Tell tells the user's handler of an error. If it panics, the client is told of both; what is the recipe.
func Tell(ctx context.Context, client Reporter, what string, handler func(ctx context.Context, err error), err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errtext.Wrap(err, "curator", "panic in the error handler: %s, told of", errtext.Panic(p))
			client.ReportUnhandled(ctx, what, err)
		}
	}()
	handler(ctx, err)
}

// Guard returns what calls the listeners of a recipe, whose name what is: their panics are reported, and end nothing.
func Guard(ctx context.Context, client Reporter, what string) func(fn func()) {
	return func(fn func()) {
		defer func() {
			if p := recover(); p != nil {
				err := fmt.Errorf("curator: panic in a listener: %s\n%s", errtext.Panic(p), debug.Stack())
				client.ReportUnhandled(ctx, what, err)
			}
		}()
		fn()
	}
}
