package waitqueue

import (
	"context"
	"sync"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
)

// EndedContext returns a context that has ended with the cause. It is the context of a nil hold.
func EndedContext(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // it has ended
	cancel(cause)
	return ctx
}

// RefusingClient returns a function that returns a client whose operations all fail with err. The client has no
// connection, and can be neither started nor closed. The methods of a nil hold use it.
func RefusingClient(err error) func() *framework.Client {
	return sync.OnceValue(func() *framework.Client {
		refuse := hook.Refuse(err).(framework.Option)
		client, _ := framework.New("none", refuse, framework.WithEnsembleTracker(false)) // the arguments are valid
		return client.UsingNamespace("")
	})
}
