package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
)

// Do acquires the lock, calls fn, and releases the lock, even if fn panics. The context of fn derives from ctx and also
// ends when the lock is lost, with the cause [ErrLockLost]; [HoldOf] returns its hold. ctx bounds the wait for the lock
// and for the release, which goes on in the background after that. Do returns the error of the acquire, or the joined
// errors of fn and of the release, and [ErrLockLost] if the lock was lost while fn ran. Without fn it acquires nothing,
// and the error matches [framework.ErrBadArguments]. In Java: Locker.
func Do(ctx context.Context, lock InterProcessLock, fn func(ctx context.Context) error) (err error) {
	if fn == nil {
		return errtext.Wrap(fmt.Errorf("%w: no function", framework.ErrBadArguments), "locks", "do")
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		cause := context.Cause(hold.Context())
		lost := errors.Is(cause, ErrLockLost) || cause == nil && hold.hasEndedSession() // the context is about to end
		if lost && !errors.Is(err, ErrLockLost) {
			err = errors.Join(err, ErrLockLost)
		}
		if releaseErr := hold.Release(ctx); releaseErr != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
			err = errors.Join(err, releaseErr)
		}
	}()
	workCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(hold.Context(), func() { cancel(context.Cause(hold.Context())) })
	defer stop()
	return fn(context.WithValue(workCtx, holdKey{}, hold))
}

type holdKey struct{}

// HoldOf returns the hold of a context that [Do] passed to its function. It returns nil for any other context, such as
// that of [Hold.Context].
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}
