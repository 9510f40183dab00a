package locks

import (
	"context"
	"errors"
)

// Do acquires the lock, calls fn, and releases the lock whatever comes of it, a panic included. The context of fn is
// ctx that also ends when the lock is lost, with the cause [ErrLockLost]; [HoldOf] returns the hold that it carries.
// ctx bounds the waiting for the lock and for the release, which goes on in the background when ctx has ended. The
// error is that of the acquire, or those of fn and of the release, and [ErrLockLost] if the lock was lost while fn ran.
// In Java: Locker.
func Do(ctx context.Context, lock InterProcessLock, fn func(ctx context.Context) error) (err error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if errors.Is(context.Cause(hold.Context()), ErrLockLost) && !errors.Is(err, ErrLockLost) {
			err = errors.Join(err, ErrLockLost)
		}
		if failed := hold.Release(ctx); failed != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
			err = errors.Join(err, failed)
		}
	}()
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(hold.Context(), func() { cancel(context.Cause(hold.Context())) })
	defer stop()
	return fn(context.WithValue(work, holdKey{}, hold))
}

type holdKey struct{}

// HoldOf returns the hold of a context that [Do] gave to its function, and nil for another context, such as that of
// Hold.Context. The writes of a nil Hold fail with [ErrReleased].
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}
