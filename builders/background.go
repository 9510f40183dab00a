package builders

import (
	"context"
	"sync"

	"github.com/gocurator/curator/callbacks"
)

// recycled returns the memory of an earlier operation, or new memory.
func recycled[T any](pool *sync.Pool) *T {
	if o, ok := pool.Get().(*T); ok {
		return o
	}
	return new(T)
}

// recycle returns the memory of an operation to its pool.
func recycle[T any](pool *sync.Pool, o *T) {
	*o = *new(T)
	pool.Put(o)
}

// background has the settings that InBackground adds to a builder.
type background struct {
	cb      callbacks.BackgroundCallback
	onError func(message string, err error)
}

// Background is a builder whose operation runs in the background. It is a value like the builder that it comes from.
type Background struct {
	background
	start func(ctx context.Context, path string, b background) error
}

// WithUnhandledErrorListener calls fn if the operation fails for good, instead of the client's unhandled-error
// listeners. The callback is called too. In Java: withUnhandledErrorListener.
func (b Background) WithUnhandledErrorListener(fn func(message string, err error)) Background {
	b.onError = fn
	return b
}

// ForPath submits the operation and does not wait. An error means only that it was not accepted: the path is invalid,
// or the client is not started or closed. Otherwise the callback is called exactly once. The operation continues when
// ctx ends; the callback gets the values of ctx.
func (b Background) ForPath(ctx context.Context, path string) error {
	return b.start(ctx, path, b.background)
}

// BackgroundData is a [Background] whose operation takes data.
type BackgroundData struct {
	background
	start func(ctx context.Context, path string, data []byte, b background) error
}

// WithUnhandledErrorListener works as in [Background].
func (b BackgroundData) WithUnhandledErrorListener(fn func(message string, err error)) BackgroundData {
	b.onError = fn
	return b
}

// ForPath submits the operation as [Background.ForPath] does. data is copied. nil stands for the default data of the
// client, an empty slice for no data.
func (b BackgroundData) ForPath(ctx context.Context, path string, data []byte) error {
	return b.start(ctx, path, data, b.background)
}

// BackgroundEnsemble is a [Background] for the ensemble, without a path.
type BackgroundEnsemble struct {
	background
	start func(ctx context.Context, b background) error
}

// WithUnhandledErrorListener works as in [Background].
func (b BackgroundEnsemble) WithUnhandledErrorListener(fn func(message string, err error)) BackgroundEnsemble {
	b.onError = fn
	return b
}

// ForEnsemble submits the operation as [Background.ForPath] does.
func (b BackgroundEnsemble) ForEnsemble(ctx context.Context) error { return b.start(ctx, b.background) }

// BackgroundTransaction is a [Background] for a transaction.
type BackgroundTransaction struct {
	background
	start func(ctx context.Context, ops []TransactionOperation, b background) error
}

// WithUnhandledErrorListener works as in [Background].
func (b BackgroundTransaction) WithUnhandledErrorListener(fn func(message string, err error)) BackgroundTransaction {
	b.onError = fn
	return b
}

// ForOperations submits the transaction as [Background.ForPath] does.
func (b BackgroundTransaction) ForOperations(ctx context.Context, ops ...TransactionOperation) error {
	return b.start(ctx, ops, b.background)
}
