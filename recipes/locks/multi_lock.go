package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
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

// Acquire waits for all locks. When one cannot be had those before it are released; when one is lost while another is
// waited for, all are acquired anew. ctx bounds the waiting, that for the releases too, which go on in the background
// when it has ended. The [Hold] ends when any of the locks is lost; its path and token are those of the first, and
// [Hold.Tokens] has those of all.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, ctx, func(ctx context.Context, l InterProcessLock) (*Hold, error) { return l.Acquire(ctx) })
}

// TryAcquire is Acquire that gives up with [ErrNotAcquired] after wait, one wait for all of them. 0 takes the locks if
// all of them are free.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	if wait < 0 {
		return nil, fmt.Errorf("locks: negative wait %v", wait)
	}
	end, patience := time.Now().Add(wait), ctx
	if wait > 0 {
		var cancel context.CancelFunc
		patience, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	return m.acquire(ctx, patience, func(ctx context.Context, l InterProcessLock) (*Hold, error) {
		left := time.Until(end)
		if wait > 0 && left <= 0 { // a wait of 0 would last as long as the retry policy tries for a connection
			return nil, ErrNotAcquired
		}
		return l.TryAcquire(ctx, max(left, 0))
	})
}

var errNoLocks = errors.New("locks: a multi lock of no locks")

// acquire acquires all locks; patience bounds the waiting for a release.
func (m *InterProcessMultiLock) acquire(
	ctx, patience context.Context, acquire func(context.Context, InterProcessLock) (*Hold, error),
) (*Hold, error) {
	if len(m.locks) == 0 {
		return nil, errNoLocks
	}
	within, asked := m.told.Acquire(ctx)
	holds, err := m.acquireAll(within, patience, acquire)
	asked.End(outcome(err), err)
	if err != nil {
		return nil, err
	}
	g := joinGrants(ctx, holds)
	g.observe(m.told.Hold(asked))
	return &Hold{grant: g}, nil
}

// acquireAll acquires all locks, or none.
func (m *InterProcessMultiLock) acquireAll(
	ctx, patience context.Context, acquire func(context.Context, InterProcessLock) (*Hold, error),
) ([]*Hold, error) {
	for {
		var holds []*Hold
		for _, l := range m.locks {
			hold, err := acquire(ctx, l)
			if err != nil {
				return nil, errors.Join(err, giveBack(patience, holds))
			}
			holds = append(holds, hold)
		}
		if !slices.ContainsFunc(holds, isLost) {
			return holds, nil
		}
		if err := giveBack(patience, holds); err != nil {
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

// giveBack releases holds. It does not wait beyond ctx, whose end is no error: there may be no connection for long, and
// the releases go on in the background.
func giveBack(ctx context.Context, holds []*Hold) error {
	if err := releaseAll(ctx, holds); ctx.Err() == nil {
		return err
	}
	return nil
}

// joinGrants returns a grant that lasts as long as all of the holds.
func joinGrants(ctx context.Context, holds []*Hold) *grant {
	others := make([]*lineup.Fence, len(holds)-1)
	for i, h := range holds[1:] {
		others[i] = &h.fence
	}
	g := &grant{
		fence:   holds[0].fence.With(others...),
		path:    holds[0].Path(),
		holds:   1,
		rest:    func() {}, // each of the holds has its own
		release: func(ctx context.Context) error { return releaseAll(ctx, holds) },
	}
	for _, h := range holds {
		g.tokens = append(g.tokens, h.tokens...)
		g.sessions = append(g.sessions, h.sessions...)
	}
	g.begin(context.WithoutCancel(builders.OutOfFlight(ctx)))
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
