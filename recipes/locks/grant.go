package locks

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
)

// grant is a node that has its turn. All holds of one owner share it. leader.Leadership is its sibling: it has one
// holder, writes that outlive its context, and four causes of its end. Package waitqueue has what both need.
type grant struct {
	ctx            context.Context
	cancel         context.CancelCauseFunc
	stopListening  func() bool // ends the listening to the end of the session
	stopHeartbeats func()
	path           string
	tokens         []int64              // one for each lock
	sessions       []*framework.Session // the sessions of the ephemeral nodes
	watch          *waitqueue.NodeWatch // nil for a multi lock; its parts have their own
	fence          waitqueue.Fence
	release        func(ctx context.Context) error

	mu    sync.Mutex
	holds int
	span  *report.HoldSpan // nil before setSpan
}

// grantKey is the key of the grant in its context.
type grantKey struct{}

// newGrant returns a grant for a contender. It does not watch the node yet. The context of the grant has the values of
// ctx.
func newGrant(ctx context.Context, queue *waitqueue.Queue, c *waitqueue.Contender) *grant {
	values := context.WithoutCancel(hook.WithRetries(ctx))
	g := &grant{
		path: c.Path, tokens: []int64{c.Stat.Czxid}, holds: 1, stopHeartbeats: queue.Client.QuorumHeartbeats(),
		fence: waitqueue.NewFence(queue.Client, c.Path, ErrLockLost),
	}
	g.initContext(values)
	g.watch = waitqueue.NewNodeWatch(values, queue.Client, c, func() { g.lose(ErrLockLost) })
	g.release = func(ctx context.Context) error {
		ctx, cancel := g.untilSessionEnds(ctx)
		defer cancel()
		err := queue.Release(ctx, c.Path) // after the end of ctx it goes on in the background
		if err == nil || g.hasEndedSession() {
			return nil // the server deletes the node with its session
		}
		g.watch.Remove() // the node may stay
		return errtext.Wrap(err, "locks", "release")
	}
	g.stopListening = func() bool { return true }
	if c.Stat.EphemeralOwner != 0 { // a persistent node outlives the session
		g.sessions = []*framework.Session{c.Session}
		g.stopListening = context.AfterFunc(c.Session.Context(), func() { g.lose(ErrLockLost) })
	}
	return g
}

// initContext creates the context of the grant with the values of another context.
func (g *grant) initContext(values context.Context) {
	g.ctx, g.cancel = context.WithCancelCause(context.WithValue(values, grantKey{}, g))
}

// lose ends a grant that was not released.
func (g *grant) lose(cause error) {
	g.stopWatch()
	g.stopHeartbeats() // before the end of the context, which shows that there are none
	g.cancel(cause)
	g.endSpan()
}

func (g *grant) stopWatch() {
	if g.watch != nil {
		g.watch.Stop()
	}
}

// setSpan sets the span that ends with the grant. It may be nil.
func (g *grant) setSpan(span *report.HoldSpan) {
	if span == nil {
		return
	}
	g.mu.Lock()
	g.span = span
	g.mu.Unlock()
	if !g.isHeld() { // the grant has ended meanwhile
		g.endSpan()
	}
}

func (g *grant) endSpan() { g.currentSpan().End(g.outcome()) }

func (g *grant) currentSpan() *report.HoldSpan {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.span
}

// outcome returns telemetry's word for the end of the grant.
func (g *grant) outcome() string {
	if errors.Is(context.Cause(g.ctx), ErrReleased) {
		return report.Released
	}
	return report.Lost
}

// newHold returns one more hold. It fails if the lock is lost or released.
func (g *grant) newHold() (*Hold, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := context.Cause(g.ctx); err != nil {
		return nil, err
	}
	if g.hasEndedSession() { // the context is about to end
		return nil, ErrLockLost
	}
	g.holds++
	return &Hold{grant: g}, nil
}

// isHeld reports whether the grant has not ended. It is exact right after a suspension of the machine, too.
func (g *grant) isHeld() bool { return g.ctx.Err() == nil && !g.hasEndedSession() }

// isOwnContext reports whether ctx is the context of the grant or derived from it, and has not ended before it.
func (g *grant) isOwnContext(ctx context.Context) bool {
	if ctx.Value(grantKey{}) != g {
		return false
	}
	return ctx.Err() == nil || g.ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Cause(g.ctx))
}

// detached returns a context with the values and the deadline of ctx.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	return context.WithoutCancel(ctx), func() {}
}

// untilSessionEnds returns a context that ends with ctx or with the first of the sessions.
func (g *grant) untilSessionEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if g.hasEndedSession() { // AfterFunc would cancel later
		cancel()
	}
	stops := make([]func() bool, len(g.sessions))
	for i, s := range g.sessions {
		stops[i] = context.AfterFunc(s.Context(), cancel)
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// hasEndedSession reports whether one of the sessions has ended.
func (g *grant) hasEndedSession() bool {
	return slices.ContainsFunc(g.sessions, func(s *framework.Session) bool { return s.Context().Err() != nil })
}
