package queue

import (
	"context"
	"errors"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// once is for an operation that is tried once, and goes on when ctx ends.
func once(ctx context.Context) context.Context {
	return builders.InOneFlight(context.WithoutCancel(ctx))
}

// outliving returns a context for a question that is to be answered all the same when ctx ends. It ends a little later.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = pause(out, lastAnswer)
		cancel()
	})
	return out, func() { stop(); cancel() }
}

// lastAnswer is how long an answer is waited for after the end of the context.
const lastAnswer = time.Second

// awaitAnswer waits for the answer to what changes the queue: without it nobody knows what has become of an element,
// and in all likelihood it is on its way.
func awaitAnswer(ctx context.Context, done <-chan struct{}) {
	ctx, cancel := outliving(ctx)
	defer cancel()
	_ = awaitDone(ctx, done)
}

// answer waits for the answer to f, as awaitAnswer does.
func answer[T any](ctx context.Context, f builders.Future[T]) (T, error) {
	awaitAnswer(ctx, f.Done())
	return f.Wait(ctx)
}

// isUncertain reports whether err leaves open if something sent with once has taken effect.
func isUncertain(ctx context.Context, err error) bool {
	if errors.Is(err, framework.ErrNotSent) {
		return false
	}
	return waitqueue.IsOutage(err) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}
