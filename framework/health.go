package framework

import (
	"context"
	"time"

	"github.com/gocurator/curator/internal/telemetry"
)

// Health is the state of a client at one moment, see [Client.Health].
type Health struct {
	// Life is the state of the client's life. State is the connection state, 0 before the first.
	Life  State
	State ConnectionState
	// Server is the address that the client is connected to, "" without a connection.
	Server string
	// SessionID is the id of the newest session, 0 before the first.
	SessionID int64
	// LastAnswer is the time at which the last answered request or ping was sent; zero before the first session. The
	// session clock counts from it, or from an earlier time with quorum heartbeats: see [Client.QuorumHeartbeats].
	LastAnswer time.Time
	// SessionLeft is the time after which the session counts as lost if no answer comes, 0 without a session.
	SessionLeft time.Duration
	// InFlight counts the requests that were sent and are not answered. Queued counts those that wait on this connection
	// because enough are in flight.
	InFlight, Queued int
	// Pending counts the operations that are accepted and not done: they have no result, or their callback has not
	// returned. Parked counts the pending operations that wait for a connection, Retrying those in the pause before a
	// retry.
	Pending, Parked, Retrying int
	// Callbacks counts the results and events that wait for the dispatcher. CallbackAge is an upper bound of the time for
	// which the oldest of them has waited or has been running: a large value means that a callback blocks.
	Callbacks   int
	CallbackAge time.Duration
	// Watches counts the watches that are set.
	Watches int
}

// Health returns the state of the client, for a health check or a log. It does no I/O, waits for nothing that the
// program does, and is safe for concurrent use. The numbers are metrics too: see docs/tracing.md.
func (c *Client) Health() Health { return c.core.health() }

func (k *core) health() Health {
	h := Health{State: k.connection.currentState(), SessionLeft: k.connection.sessionLeft()}
	h.SessionID = k.connection.currentSession().ID()
	k.mu.Lock()
	h.Life = k.state
	dispatcher := k.dispatcher
	k.mu.Unlock()
	if dispatcher != nil {
		h.Callbacks, h.CallbackAge = dispatcher.Load()
	}
	if conn := k.connection.current.Load(); conn != nil {
		l := conn.Load()
		h.Server, h.InFlight, h.Queued, h.Watches = l.Server, l.InFlight, l.Queued, l.Watches
		if conn.SessionID() != 0 {
			h.LastAnswer = conn.LastAnswer()
		}
	}
	l := k.executor.Load()
	h.Pending, h.Parked, h.Retrying = l.Pending, l.Parked, l.Retries
	return h
}

// load returns the numbers of health for the gauges.
func (k *core) load() telemetry.Load {
	h := k.health()
	l := telemetry.Load{
		Connected: h.State.IsConnected(), SessionLeft: h.SessionLeft, InFlight: h.InFlight, Queued: h.Queued,
		Pending: h.Pending, Parked: h.Parked, Retrying: h.Retrying, Callbacks: h.Callbacks, CallbackAge: h.CallbackAge,
		Watches: h.Watches,
	}
	if !h.LastAnswer.IsZero() {
		l.AnswerAge = time.Since(h.LastAnswer)
	}
	return l
}

// Drain returns nil when every operation that the client has accepted is done: it has its result, and its callback has
// returned. Operations that begin meanwhile, in callbacks or on other goroutines, count too. If ctx ends first Drain
// returns its error, and nothing else changes. Call it before [Client.Close], which fails all operations that are not
// done. Do not call it from a callback, which would wait for itself.
func (c *Client) Drain(ctx context.Context) error { return c.core.executor.WaitQuiet(ctx) }
