package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
)

// errReturned ends the leadership of a selector whose function has returned.
var errReturned = fmt.Errorf("%w: the function has returned", ErrLeadershipLost)

// Leadership is one term of a leader, from its beginning to its end. It is safe for concurrent use.
type Leadership struct {
	ctx           context.Context
	cancel        context.CancelCauseFunc
	stopListening func() bool // ends the listening to the end of the session
	session       *framework.Session
	path          string
	token         int64
	fence         waitqueue.Fence
	writeCtx      context.Context // ends when writes of Client begin to fail
	stopWrites    context.CancelCauseFunc

	mu   sync.Mutex
	span *report.HoldSpan // nil before setSpan
}

func newLeadership(ctx context.Context, client *framework.Client, c *waitqueue.Contender) *Leadership {
	l := &Leadership{
		path: c.Path, token: c.Stat.Czxid, session: c.Session,
		fence: waitqueue.NewFence(client, c.Path, ErrLeadershipLost),
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.writeCtx, l.stopWrites = context.WithCancelCause(context.WithoutCancel(ctx))
	l.stopListening = context.AfterFunc(c.Session.Context(), func() {
		l.stopWrites(ErrLeadershipLost)
		l.cancel(ErrLeadershipLost)
		l.endSpan()
	})
	return l
}

// end ends the leadership. The caller calls endSpan after it, without a mutex: exporting a span may take time.
func (l *Leadership) end(cause error) {
	l.stopListening()
	if errors.Is(cause, ErrLeadershipLost) { // otherwise a selector keeps its node until its function has returned
		l.stopWrites(cause) // before the end of ctx, which shows that there are none
	}
	l.cancel(cause)
}

// setSpan sets the span that ends with the leadership.
func (l *Leadership) setSpan(span *report.HoldSpan) {
	l.mu.Lock()
	l.span = span
	l.mu.Unlock()
	if l.ctx.Err() != nil { // the leadership has ended meanwhile
		l.endSpan()
	}
}

// endSpan ends the span of a leadership that has ended. It may be called again, and on nil.
func (l *Leadership) endSpan() {
	if l == nil || l.ctx.Err() == nil {
		return
	}
	l.mu.Lock()
	span := l.span
	l.mu.Unlock()
	span.End(outcomes[context.Cause(l.ctx)])
}

// outcomes are telemetry's words for the causes of an end.
var outcomes = map[error]string{
	ErrLeadershipLost: report.Lost,
	ErrClosed:         report.EndedClosed,
	ErrInterrupted:    report.Interrupted,
	errReturned:       report.Returned,
}

// isHeld reports whether the leadership has not ended. It is exact right after a suspension of the machine, too.
func (l *Leadership) isHeld() bool { return l.ctx.Err() == nil && l.session.Context().Err() == nil }

// mayWrite reports whether leadership was not lost. Unlike isHeld it looks behind the end of a caller's context, and
// behind an interruption.
func (l *Leadership) mayWrite() bool {
	return l.writeCtx.Err() == nil && l.session.Context().Err() == nil
}

// Context returns the context for the work of the leader. It ends when leadership is lost, with the cause
// [ErrLeadershipLost], or given up, with [ErrClosed].
func (l *Leadership) Context() context.Context { return l.ctx }

// Path returns the path of the leader's node. In Java: getOurPath, getLastPathIsLeader.
func (l *Leadership) Path() string { return l.path }

// Token returns the fencing token: a number that grows from leader to leader of a path, across all processes. It is the
// transaction id that created the node.
func (l *Leadership) Token() int64 { return l.token }
