package queue

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// once returns a context for an operation that is tried once and continues when ctx ends.
func once(ctx context.Context) context.Context {
	return builders.Pipelined(context.WithoutCancel(ctx))
}

// outliving returns a context for a request whose answer is still needed when ctx ends. It ends a little later than
// ctx.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = waitqueue.Pause(out, lastAnswer)
		cancel()
	})
	return out, func() { stop(); cancel() }
}

// lastAnswer bounds the wait for an answer after the end of the context.
const lastAnswer = time.Second

// awaitAnswer waits for the answer to a change of the queue. Without the answer the fate of an element is unknown, and
// the answer is most likely on its way.
func awaitAnswer(ctx context.Context, done <-chan struct{}) {
	ctx, cancel := outliving(ctx)
	defer cancel()
	_ = awaitDone(ctx, done)
}

// answer waits for the answer to f in the same way as awaitAnswer.
func answer[T any](ctx context.Context, f builders.Future[T]) (T, error) {
	awaitAnswer(ctx, f.Done())
	return f.Wait(ctx)
}

// isUncertain reports whether a request sent with once may or may not have taken effect after err.
func isUncertain(ctx context.Context, err error) bool {
	if errors.Is(err, framework.ErrNotSent) {
		return false
	}
	return waitqueue.IsOutage(err) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
