package locks

import (
	"context"
	"errors"
)

// Do acquires the lock, calls fn, and releases the lock whatever comes of it, a panic included. The context of fn is
// ctx that also ends when the lock is lost, with the cause [ErrLockLost]; [HoldOf] returns the hold that it carries. ctx
// bounds the waiting for the lock, not the release, which is waited for. The error is that of the acquire, or those of fn and
// of the release. In Java: Locker.
func Do(ctx context.Context, lock InterProcessLock, fn func(ctx context.Context) error) (err error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(context.WithoutCancel(ctx))) }()
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(hold.Context(), func() { cancel(context.Cause(hold.Context())) })
	defer stop()
	return fn(context.WithValue(work, holdKey{}, hold))
}

type holdKey struct{}

// HoldOf returns the hold of a context that [Do] gave to its function, and nil for another context.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}
