package framework

import (
	"context"

	"github.com/gocurator/curator/internal/exec"
)

// Session is a session of a client with the ensemble. Ephemeral nodes live as long as the session that created them:
// zk.Stat.EphemeralOwner is its id. A nil Session, which a client has before its first one, is a lost session with id
// 0.
type Session struct {
	id         int64
	ctx        context.Context
	cancel     context.CancelCauseFunc
	checkClock func() // ends the session if its time is over
}

func newSession(id int64, checkClock func()) *Session {
	ctx, cancel := context.WithCancelCause(exec.Root)
	return &Session{id: id, ctx: ctx, cancel: cancel, checkClock: checkClock}
}

// lostContext is the context of a nil Session.
var lostContext = func() context.Context {
	ctx, cancel := context.WithCancelCause(exec.Root)
	cancel(ErrSessionLost)
	return ctx
}()

// ID returns the id of the session.
func (s *Session) ID() int64 {
	if s == nil {
		return 0
	}
	return s.id
}

// Context returns a context that ends with the session: when the server reports that it has expired, and at the latest
// when the negotiated session timeout has passed since the server's last answer, by the clock of this process, also
// without a connection. While a recipe relies on the session, only answers count that a majority of the servers proves:
// see [Client.QuorumHeartbeats]. Its cause is [ErrSessionLost], or [ErrClosed] when the client was closed. An operation
// that begins after its end belongs to the next session.
//
// Timers stand still while the machine is suspended, so the context may end a little after the machine continues.
// Context checks the clock first: if the time of the session is over, the context that it returns has ended.
func (s *Session) Context() context.Context {
	if s == nil || s.ctx == nil {
		return lostContext
	}
	if s.ctx.Err() == nil {
		s.checkClock()
	}
	return s.ctx
}
