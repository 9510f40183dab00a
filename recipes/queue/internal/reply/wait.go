package reply

import (
	"context"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/waitqueue"
)

// Once returns a context for an operation that is tried once and continues when ctx ends.
func Once(ctx context.Context) context.Context {
	return builders.Pipelined(context.WithoutCancel(ctx))
}

// Outliving returns a context for a request whose answer is still needed when ctx ends. It ends a little later than
// ctx.
func Outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = waitqueue.Pause(out, lastAnswer)
		cancel()
	})
	return out, func() { stop(); cancel() }
}

// lastAnswer bounds the wait for an answer after the end of the context.
const lastAnswer = time.Second

// AwaitBeyond waits for the answer to a change of the queue. Without the answer the fate of an element is unknown, and
// the answer is most likely on its way.
func AwaitBeyond(ctx context.Context, done <-chan struct{}) {
	ctx, cancel := Outliving(ctx)
	defer cancel()
	_ = Await(ctx, done)
}

// Get waits for the answer to f in the same way as AwaitBeyond.
func Get[T any](ctx context.Context, f builders.Future[T]) (T, error) {
	AwaitBeyond(ctx, f.Done())
	return f.Wait(ctx)
}

// Doubled returns first, doubled n times but not beyond limit.
func Doubled(first, limit time.Duration, n int) time.Duration {
	for ; n > 0 && first < limit; n-- {
		first *= 2
	}
	return min(first, limit)
}

// Nudge wakes the goroutine that waits for wake, or will.
func Nudge(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// IsClosed reports whether done is closed.
func IsClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// IsDone reports whether future has its answer.
func IsDone[V any](future builders.Future[V]) bool { return IsClosed(future.Done()) }

// Await waits until done is closed, and reports false if ctx ended before.
func Await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
