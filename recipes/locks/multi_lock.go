package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/waitqueue"
)

// InterProcessMultiLock is several locks as one: it holds all of them or none. It acquires them in the given order.
// Give the same locks to all multi locks in the same order, or two of them may wait for each other. In Java:
// InterProcessMultiLock.
type InterProcessMultiLock struct {
	locks []InterProcessLock
	obs   report.Lock
}

var _ InterProcessLock = (*InterProcessMultiLock)(nil)

// NewInterProcessMultiLock returns the multi lock of locks.
func NewInterProcessMultiLock(locks ...InterProcessLock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{locks: slices.Clone(locks)}
	for _, l := range locks {
		if l, ok := l.(observed); ok { // a user's own lock type has no telemetry
			m.obs = report.NewLock(l.telemetry(), "multi_lock", "", "")
			break
		}
	}
	return m
}

// observed is a lock with telemetry.
type observed interface{ telemetry() *telemetry.Telemetry }

// Acquire waits for all locks. If one fails, it releases those before it. If one is lost while it waits for another, it
// releases all and starts again. ctx bounds the wait, also the wait for these releases, which go on in the background.
// The [Hold] ends when any of the locks is lost. Its path and token are those of the first lock; [Hold.Tokens] returns
// those of all.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, ctx, func(ctx context.Context, l InterProcessLock) (*Hold, error) { return l.Acquire(ctx) })
}

// TryAcquire is Acquire that fails with [ErrNotAcquired] after wait, one wait for all locks. A wait of 0 takes the
// locks if all are free. A negative wait is an error.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if wait < 0 {
		return nil, fmt.Errorf("locks: negative wait %v", wait)
	}
	end, releaseCtx := time.Now().Add(wait), ctx
	if wait > 0 {
		var cancel context.CancelFunc
		releaseCtx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	return m.acquire(ctx, releaseCtx, func(ctx context.Context, l InterProcessLock) (*Hold, error) {
		left := time.Until(end)
		if wait > 0 && left <= 0 { // without a connection, a wait of 0 would last for all retries of the client
			return nil, ErrNotAcquired
		}
		return l.TryAcquire(ctx, max(left, 0))
	})
}

var errNoLocks = errors.New("locks: a multi lock of no locks")

// acquire acquires all locks. releaseCtx bounds the wait for a release.
func (m *InterProcessMultiLock) acquire(
	ctx, releaseCtx context.Context, acquire func(context.Context, InterProcessLock) (*Hold, error),
) (*Hold, error) {
	if len(m.locks) == 0 {
		return nil, errNoLocks
	}
	waitCtx, span := m.obs.Acquire(ctx)
	holds, err := m.acquireAll(waitCtx, releaseCtx, acquire)
	span.End(waitOutcome(err), err)
	if err != nil {
		return nil, err
	}
	g := joinGrants(ctx, holds)
	g.setSpan(m.obs.Hold(span))
	return &Hold{grant: g}, nil
}

// acquireAll acquires all locks, or none.
func (m *InterProcessMultiLock) acquireAll(
	ctx, releaseCtx context.Context, acquire func(context.Context, InterProcessLock) (*Hold, error),
) ([]*Hold, error) {
	var holds []*Hold
	over := false
	defer func() {
		if !over { // code of the program, such as an ACL provider, has ended the goroutine
			_ = rollBack(releaseCtx, holds)
		}
	}()
	for {
		holds = nil
		for _, l := range m.locks {
			hold, err := acquire(ctx, l)
			if err != nil {
				over = true
				return nil, errors.Join(err, rollBack(releaseCtx, holds))
			}
			holds = append(holds, hold)
		}
		if !slices.ContainsFunc(holds, isLost) {
			over = true
			return holds, nil
		}
		if err := rollBack(releaseCtx, holds); err != nil {
			over = true
			return nil, err
		}
	}
}

func isLost(h *Hold) bool { return !h.isHeld() }

// releaseAll releases all holds, the newest first, even if some releases fail, and joins the errors.
func releaseAll(ctx context.Context, holds []*Hold) error {
	var errs []error
	for _, h := range slices.Backward(holds) {
		errs = append(errs, h.Release(ctx))
	}
	return errors.Join(errs...)
}

// rollBack releases the holds of an acquire that failed. It waits no longer than ctx, whose end is no error: the
// releases go on in the background.
func rollBack(ctx context.Context, holds []*Hold) error {
	if err := releaseAll(ctx, holds); ctx.Err() == nil {
		return err
	}
	return nil
}

// joinGrants returns a grant that ends with the first of the holds.
func joinGrants(ctx context.Context, holds []*Hold) *grant {
	others := make([]*waitqueue.Fence, len(holds)-1)
	for i, h := range holds[1:] {
		others[i] = &h.fence
	}
	g := &grant{
		fence:          holds[0].fence.With(others...),
		path:           holds[0].Path(),
		holds:          1,
		stopHeartbeats: func() {}, // each of the holds has its own
		release:        func(ctx context.Context) error { return releaseAll(ctx, holds) },
	}
	for _, h := range holds {
		g.tokens = append(g.tokens, h.tokens...)
		g.sessions = append(g.sessions, h.sessions...)
	}
	g.initContext(context.WithoutCancel(hook.WithRetries(ctx)))
	stops := make([]func() bool, len(holds))
	for i, h := range holds {
		stops[i] = context.AfterFunc(h.Context(), func() { g.lose(context.Cause(h.Context())) })
	}
	g.stopListening = func() bool {
		for _, stop := range stops {
			stop()
		}
		return true
	}
	return g
}

// IsAcquiredInThisProcess reports whether all locks are held in this process and not lost.
func (m *InterProcessMultiLock) IsAcquiredInThisProcess() bool {
	for _, l := range m.locks {
		if !l.IsAcquiredInThisProcess() {
			return false
		}
	}
	return len(m.locks) > 0
}
