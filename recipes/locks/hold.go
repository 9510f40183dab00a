package locks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Hold is a lock that is held, from Acquire to Release. It is safe for concurrent use. A nil Hold is a released one.
type Hold struct {
	*grant
	released atomic.Bool
}

// grant is what the holds of one owner share: a node that is first in line.
type grant struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stop     func() bool // of listening to the session
	rest     func()      // ends the quorum heartbeats
	path     string
	tokens   []int64              // one for each lock
	sessions []*framework.Session // of the nodes that go with their session
	watch    *lineup.NodeWatch    // of the node; nil for a multi lock, whose parts have theirs
	fence    lineup.Fence
	release  func(ctx context.Context) error

	mu     sync.Mutex
	holds  int
	tenure *telemetry.Tenure
}

// grantKey is the key of the grant in its context.
type grantKey struct{}

// newGrant returns a grant for a contender of a queue. Its node is not watched yet. ctx has the values for its context.
func newGrant(ctx context.Context, queue *lineup.Queue, c *lineup.Contender) *grant {
	values := context.WithoutCancel(builders.OutOfFlight(ctx))
	g := &grant{
		path: c.Path, tokens: []int64{c.Stat.Czxid}, holds: 1, rest: queue.Client.QuorumHeartbeats(),
		fence: lineup.NewFence(queue.Client, c.Path, ErrLockLost),
	}
	g.begin(values)
	g.watch = lineup.NewNodeWatch(values, queue.Client, c, func() { g.lose(ErrLockLost) })
	g.release = func(ctx context.Context) error {
		err := queue.Release(ctx, c.Path)
		if err != nil { // the node may stay
			g.watch.Remove()
		}
		return err
	}
	g.stop = func() bool { return true }
	if c.Stat.EphemeralOwner != 0 { // else it outlives the session
		g.sessions = []*framework.Session{c.Session}
		g.stop = context.AfterFunc(c.Session.Context(), func() { g.lose(ErrLockLost) })
	}
	return g
}

// begin makes the context of the grant, with values.
func (g *grant) begin(values context.Context) {
	g.ctx, g.cancel = context.WithCancelCause(context.WithValue(values, grantKey{}, g))
}

// lose ends the grant before it is released.
func (g *grant) lose(cause error) {
	g.unwatch()
	g.cancel(cause)
	g.rest()
	g.tell()
}

// unwatch ends the reports about the node.
func (g *grant) unwatch() {
	if g.watch != nil {
		g.watch.Stop()
	}
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

// Release ends the hold. The last one of an owner deletes the node and waits for that; ctx bounds the waiting, never
// the deleting, which goes on in the background until it is done. So an error says that others may get the lock only
// later, at the latest when the session ends; the lock is released in this process all the same. Release is idempotent:
// a second call does nothing and returns nil, and so does one on a nil Hold.
//
// ctx may be the context of the hold, or one derived from it: that Release ends it does not end the waiting. Its
// deadline does, and the end of the session, with [ErrLockLost].
func (h *Hold) Release(ctx context.Context) error {
	if h == nil || h.grant == nil || h.released.Swap(true) {
		return nil
	}
	own := h.isOwn(ctx)
	h.mu.Lock()
	h.holds--
	last := h.holds == 0
	if last {
		h.stop()
		h.unwatch()
		h.cancel(ErrReleased)
		h.rest()
	}
	h.mu.Unlock()
	if !last {
		return nil
	}
	defer h.tell()
	if !own {
		return h.release(h.told().EndWith(ctx, h.end()))
	}
	ctx, cancel := h.untilSessionEnds(ctx)
	defer cancel()
	err := h.release(h.told().EndWith(ctx, h.end()))
	if err != nil && errors.Is(context.Cause(ctx), ErrLockLost) {
		return errtext.Wrap(ErrLockLost, "locks", "release %s", h.path)
	}
	return err
}

// isOwn reports whether ctx is the context of the grant or derived from it, and has not ended by itself.
func (g *grant) isOwn(ctx context.Context) bool {
	if ctx.Value(grantKey{}) != g {
		return false
	}
	return ctx.Err() == nil || g.ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Cause(g.ctx))
}

// untilSessionEnds returns a context with the values and the deadline of ctx that ends with any of the sessions, with
// the cause [ErrLockLost].
func (g *grant) untilSessionEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, end := context.WithoutCancel(ctx), func() {}
	if deadline, ok := ctx.Deadline(); ok {
		bounded, end = context.WithDeadline(bounded, deadline)
	}
	bounded, cancel := context.WithCancelCause(bounded)
	stops := make([]func() bool, len(g.sessions))
	for i, s := range g.sessions {
		if s.Context().Err() != nil { // AfterFunc calls later
			cancel(ErrLockLost)
		}
		stops[i] = context.AfterFunc(s.Context(), func() { cancel(ErrLockLost) })
	}
	return bounded, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
		end()
	}
}

func (h *Hold) isReleased() bool { return h.released.Load() }

// Context returns a context for the work that needs the lock. It has the values of the context of Acquire, not its end,
// and ends when the lock is lost, with the cause [ErrLockLost], or released, with [ErrReleased]. A lock is lost with
// its session, and when somebody deletes its node. The deletion is noticed if the process may read the node, and
// reported on the dispatcher of the client: a callback that blocks delays it.
func (h *Hold) Context() context.Context {
	if h == nil || h.grant == nil {
		return releasedContext
	}
	return h.ctx
}

// releasedContext is the context of a nil Hold.
var releasedContext = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // it has ended
	cancel(ErrReleased)
	return ctx
}()

// Path returns the path of the node that holds the lock; of a multi lock, that of its first lock.
func (h *Hold) Path() string {
	if h == nil || h.grant == nil {
		return ""
	}
	return h.path
}

// Token returns a number that grows from holder to holder of a lock, across all processes: the transaction that created
// the node. A resource that remembers the highest it has seen can refuse a holder that has lost the lock and does not
// know yet. Nodes of the same ensemble need no token: see [Hold.Client]. A reader that was the writer has the token of
// the writer. The token of a multi lock is that of its first lock, and says nothing about the others: see Tokens.
func (h *Hold) Token() int64 {
	if h == nil || h.grant == nil {
		return 0
	}
	return h.tokens[0]
}

// Tokens returns the tokens of all locks of a multi lock, in its order, for one resource each; of another lock, its
// token. The locks of a multi lock in a multi lock stand in its place.
func (h *Hold) Tokens() []int64 {
	if h == nil || h.grant == nil {
		return nil
	}
	return slices.Clone(h.tokens)
}

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
