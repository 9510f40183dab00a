package lineup

import (
	"context"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// UnhandledErrorListeners is a client that has listeners for what nobody else is told of.
type UnhandledErrorListeners interface {
	UnhandledErrorListeners() *callbacks.Listeners[framework.UnhandledError]
}

// TellUnhandled tells them of a failure in the background.
func TellUnhandled(ctx context.Context, client UnhandledErrorListeners, message string, err error) {
	client.UnhandledErrorListeners().Notify(ctx, framework.UnhandledError{Message: message, Err: err}, Guard)
}

// Guard keeps a panic of a listener from ending the recipe.
func Guard(fn func()) {
	defer func() { _ = recover() }()
	fn()
}
