package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gocurator/curator/internal/telemetry"
)

// InterProcessMultiLock is several locks as one: all of them or none. It takes them in the order in which they are
// given, so two of them that have the same locks must have them in the same order, or they may wait for each other. In
// Java: InterProcessMultiLock.
type InterProcessMultiLock struct {
	locks []InterProcessLock
	told  telemetry.Lock
}

var _ InterProcessLock = (*InterProcessMultiLock)(nil)

// NewInterProcessMultiLock returns the lock that is all of the locks.
func NewInterProcessMultiLock(locks ...InterProcessLock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{locks: slices.Clone(locks)}
	for _, l := range locks {
		if l, ok := l.(observed); ok { // a lock of somebody else's tells nothing
			m.told = l.telemetry().NewLock("multi_lock", "", "")
			break
		}
	}
	return m
}

// observed is a lock that tells telemetry what it does.
type observed interface{ telemetry() *telemetry.Telemetry }

// Acquire waits for all locks. ctx bounds the waiting. When one cannot be had those before it are released; when one is
// lost while another is waited for, all are acquired anew. The [Hold] ends when any of them is lost; its path and token
// are those of the first.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, func(ctx context.Context, l InterProcessLock) (*Hold, error) { return l.Acquire(ctx) })
}

// TryAcquire is Acquire that gives up with [ErrNotAcquired] after wait, one wait for all of them. 0 takes the locks if
// all of them are free.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if wait < 0 {
		return nil, fmt.Errorf("locks: negative wait %v", wait)
	}
	end := time.Now().Add(wait)
	return m.acquire(ctx, func(ctx context.Context, l InterProcessLock) (*Hold, error) {
		return l.TryAcquire(ctx, max(time.Until(end), 0))
	})
}

var errNoLocks = errors.New("locks: a multi lock of no locks")

func (m *InterProcessMultiLock) acquire(
	ctx context.Context, acquire func(context.Context, InterProcessLock) (*Hold, error),
) (*Hold, error) {
	if len(m.locks) == 0 {
		return nil, errNoLocks
	}
	within, asked := m.told.Acquire(ctx)
	g, err := m.grant(ctx, within, acquire)
	asked.End(outcome(err), err)
	if err != nil {
		return nil, err
	}
	g.observe(m.told.Hold(asked))
	return &Hold{grant: g}, nil
}

// grant acquires all locks, with the context within; values are for the hold.
func (m *InterProcessMultiLock) grant(
	values, within context.Context, acquire func(context.Context, InterProcessLock) (*Hold, error),
) (*grant, error) {
	for {
		var holds []*Hold
		for _, l := range m.locks {
			hold, err := acquire(within, l)
			if err != nil {
				return nil, errors.Join(err, releaseAll(context.WithoutCancel(values), holds))
			}
			holds = append(holds, hold)
		}
		if !slices.ContainsFunc(holds, isLost) {
			return joinGrants(values, holds), nil
		}
		if err := releaseAll(values, holds); err != nil {
			return nil, err
		}
	}
}

func isLost(h *Hold) bool { return !h.isHeld() }

// releaseAll releases holds, the newest first, all of them whatever the error of one is.
func releaseAll(ctx context.Context, holds []*Hold) error {
	var errs []error
	for _, h := range slices.Backward(holds) {
		errs = append(errs, h.Release(ctx))
	}
	return errors.Join(errs...)
}

// joinGrants returns a grant that lasts as long as all of the holds.
func joinGrants(ctx context.Context, holds []*Hold) *grant {
	g := &grant{
		path:    holds[0].Path(),
		token:   holds[0].Token(),
		holds:   1,
		release: func(ctx context.Context) error { return releaseAll(ctx, holds) },
	}
	g.ctx, g.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	stops := make([]func() bool, len(holds))
	for i, h := range holds {
		stops[i] = context.AfterFunc(h.Context(), func() { g.lose(context.Cause(h.Context())) })
	}
	g.stop = func() bool {
		for _, stop := range stops {
			stop()
		}
		return true
	}
	return g
}

// IsAcquiredInThisProcess reports whether all locks are held in this process, and not lost.
func (m *InterProcessMultiLock) IsAcquiredInThisProcess() bool {
	for _, l := range m.locks {
		if !l.IsAcquiredInThisProcess() {
			return false
		}
	}
	return len(m.locks) > 0
}
