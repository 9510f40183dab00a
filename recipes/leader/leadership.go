package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// errReturned ends the leadership of a selector whose function has returned.
var errReturned = fmt.Errorf("%w: the function has returned", ErrLeadershipLost)

// Leadership is the time from which a latch leads until it does not. It is safe for concurrent use. A nil Leadership is
// a lost one.
type Leadership struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    func() bool // of listening to the session
	session *framework.Session
	path    string
	token   int64
	fence   lineup.Fence
	writing context.Context // ends when Client writes nothing more
	noMore  context.CancelCauseFunc

	mu     sync.Mutex
	tenure *telemetry.Tenure
}

func newLeadership(ctx context.Context, client Client, c *lineup.Contender) *Leadership {
	l := &Leadership{
		path: c.Path, token: c.Stat.Czxid, session: c.Session,
		fence: lineup.NewFence(client, c.Path, ErrLeadershipLost),
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.writing, l.noMore = context.WithCancelCause(context.WithoutCancel(ctx))
	l.stop = context.AfterFunc(c.Session.Context(), func() {
		l.cancel(ErrLeadershipLost)
		l.noMore(ErrLeadershipLost)
		l.tell()
	})
	return l
}

// end ends it; tell is to follow, when nobody's mutex is held: what it tells may take its time.
func (l *Leadership) end(cause error) {
	l.stop()
	l.cancel(cause)
	if errors.Is(cause, ErrLeadershipLost) { // else the node of a selector stays until its function has returned
		l.noMore(cause)
	}
}

// observe has the end told of a leadership that has begun.
func (l *Leadership) observe(t *telemetry.Tenure) {
	l.mu.Lock()
	l.tenure = t
	l.mu.Unlock()
	if l.ctx.Err() != nil { // it has ended meanwhile
		l.tell()
	}
}

// tell tells why it has ended. It may be called again, and on nil.
func (l *Leadership) tell() {
	if l == nil || l.ctx.Err() == nil {
		return
	}
	l.mu.Lock()
	t := l.tenure
	l.mu.Unlock()
	t.End(outcomes[context.Cause(l.ctx)])
}

// outcomes are telemetry's words for what ends a leadership.
var outcomes = map[error]string{
	ErrLeadershipLost: telemetry.Lost,
	ErrClosed:         telemetry.EndedClosed,
	ErrInterrupted:    telemetry.Interrupted,
	errReturned:       telemetry.Returned,
}

// holds reports whether it has not ended.
func (l *Leadership) holds() bool { return l.ctx.Err() == nil && l.session.Context().Err() == nil }

// Context returns a context for the work of the leader. It ends when leadership is lost, with the cause
// [ErrLeadershipLost], or given up, with [ErrClosed].
func (l *Leadership) Context() context.Context {
	if l.isNone() {
		return lostContext
	}
	return l.ctx
}

// isNone reports whether l is nil, or the zero value.
func (l *Leadership) isNone() bool { return l == nil || l.ctx == nil }

// lostContext is the context of a nil Leadership.
var lostContext = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // it has ended
	cancel(ErrLeadershipLost)
	return ctx
}()

// Path returns the path of the leader's node. In Java: getOurPath, getLastPathIsLeader.
func (l *Leadership) Path() string {
	if l.isNone() {
		return ""
	}
	return l.path
}

// Token returns a number that grows from leader to leader of a path, across all processes: the transaction that created
// the node.
func (l *Leadership) Token() int64 {
	if l.isNone() {
		return 0
	}
	return l.token
}
