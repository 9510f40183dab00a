package leader

import (
	"context"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Leadership is the time from which a latch leads until it does not. It is safe for concurrent use.
type Leadership struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    func() bool // of listening to the session
	session *framework.Session
	path    string
	token   int64
}

func newLeadership(ctx context.Context, c *lineup.Contender) *Leadership {
	l := &Leadership{path: c.Path, token: c.Stat.Czxid, session: c.Session}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.stop = context.AfterFunc(c.Session.Context(), func() { l.cancel(ErrLeadershipLost) })
	return l
}

func (l *Leadership) end(cause error) {
	l.stop()
	l.cancel(cause)
}

// holds reports whether it has not ended.
func (l *Leadership) holds() bool { return l.ctx.Err() == nil && l.session.Context().Err() == nil }

// Context returns a context for the work of the leader. It ends when leadership is lost, with the cause
// [ErrLeadershipLost], or given up, with [ErrClosed].
func (l *Leadership) Context() context.Context { return l.ctx }

// Path returns the path of the leader's node. In Java: getOurPath, getLastPathIsLeader.
func (l *Leadership) Path() string { return l.path }

// Token returns a number that grows from leader to leader of a path, across all processes: the transaction that created
// the node.
func (l *Leadership) Token() int64 { return l.token }
