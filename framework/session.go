package framework

import (
	"context"

	"github.com/gocurator/curator/internal/exec"
)

// Session is a session of a client with the ensemble. Ephemeral nodes live as long as the session that created them:
// zk.Stat.EphemeralOwner is its id.
type Session struct {
	id     int64
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newSession(id int64) *Session {
	ctx, cancel := context.WithCancelCause(exec.Root)
	return &Session{id: id, ctx: ctx, cancel: cancel}
}

// ID returns the id of the session.
func (s *Session) ID() int64 { return s.id }

// Context returns a context that ends with the session: when the server reports that it has expired, and at the latest
// when the negotiated session timeout has passed since the server's last answer, by the clock of this process, also
// without a connection. While a recipe relies on the session, only answers count that a majority of the servers proves:
// see [Client.QuorumHeartbeats]. Its cause is [ErrSessionLost], or [ErrClosed] when the client was closed.
func (s *Session) Context() context.Context { return s.ctx }
