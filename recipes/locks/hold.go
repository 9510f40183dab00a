package locks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Hold is a lock that is held, from Acquire to Release. It is safe for concurrent use.
type Hold struct {
	*grant
	released atomic.Bool
}

// grant is what the holds of one owner share: a node that is first in line.
type grant struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    func() bool // of listening to the session
	rest    func()      // ends the quorum heartbeats
	path    string
	token   int64
	release func(ctx context.Context) error

	mu     sync.Mutex
	holds  int
	tenure *telemetry.Tenure
}

// newGrant returns a grant for a contender. release takes its node back.
func newGrant(
	ctx context.Context, client lineup.Client, c *lineup.Contender, release func(ctx context.Context) error,
) *grant {
	g := &grant{path: c.Path, token: c.Stat.Czxid, release: release, holds: 1, rest: client.QuorumHeartbeats()}
	g.ctx, g.cancel = context.WithCancelCause(context.WithoutCancel(builders.OutOfFlight(ctx)))
	g.stop = func() bool { return true }
	if c.Stat.EphemeralOwner != 0 { // else it outlives the session
		g.stop = context.AfterFunc(c.Session.Context(), func() { g.lose(ErrLockLost) })
	}
	return g
}

// lose ends the grant before it is released.
func (g *grant) lose(cause error) {
	g.cancel(cause)
	g.rest()
	g.tell()
}

// observe has the end of the grant told.
func (g *grant) observe(t *telemetry.Tenure) {
	if t == nil {
		return
	}
	g.mu.Lock()
	g.tenure = t
	g.mu.Unlock()
	if !g.isHeld() { // it has ended meanwhile
		g.tell()
	}
}

// tell tells that the grant has ended.
func (g *grant) tell() { g.told().End(g.end()) }

func (g *grant) told() *telemetry.Tenure {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tenure
}

// end is how the grant has ended.
func (g *grant) end() string {
	if errors.Is(context.Cause(g.ctx), ErrReleased) {
		return telemetry.Released
	}
	return telemetry.Lost
}

// hold returns one more hold, unless the lock is lost or let go.
func (g *grant) hold() (*Hold, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := context.Cause(g.ctx); err != nil {
		return nil, err
	}
	g.holds++
	return &Hold{grant: g}, nil
}

func (g *grant) isHeld() bool { return g.ctx.Err() == nil }

// Release ends the hold. The last one of an owner deletes the node and waits for that; ctx bounds the waiting, never the
// deleting, which goes on in the background until it is done. So an error says that others may get the lock only later,
// at the latest when the session ends; the lock is released in this process all the same. Release is idempotent: a
// second call does nothing and returns nil.
func (h *Hold) Release(ctx context.Context) error {
	if h.released.Swap(true) {
		return nil
	}
	h.mu.Lock()
	h.holds--
	last := h.holds == 0
	if last {
		h.stop()
		h.cancel(ErrReleased)
		h.rest()
	}
	h.mu.Unlock()
	if !last {
		return nil
	}
	defer h.tell()
	return h.release(h.told().EndWith(ctx, h.end()))
}

func (h *Hold) isReleased() bool { return h.released.Load() }

// Context returns a context for the work that needs the lock. It has the values of the context of Acquire, not its end,
// and ends when the lock is lost, with the cause [ErrLockLost], or released, with [ErrReleased].
func (h *Hold) Context() context.Context { return h.ctx }

// Path returns the path of the node that holds the lock.
func (h *Hold) Path() string { return h.path }

// Token returns a number that grows from holder to holder of a lock, across all processes: the transaction that created
// the node. A resource that remembers the highest it has seen can refuse a holder that has lost the lock and does not
// know yet.
func (h *Hold) Token() int64 { return h.token }

// outcome is how a wait for a lock has ended.
func outcome(err error) string {
	switch {
	case errors.Is(err, ErrNotAcquired):
		return telemetry.Timeout
	case errors.Is(err, ErrLockLost):
		return telemetry.Lost
	}
	return telemetry.Outcome(err, telemetry.Acquired)
}
