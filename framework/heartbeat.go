package framework

import "time"

// QuorumHeartbeats makes the client send quorum heartbeats until stop is called. With them the context of the [Session]
// ends before the leader of the ensemble can expire the session, as a lock needs it. It returns at once and is safe for
// concurrent use. Locks and leaders call it themselves; call it in other recipes that grant something to one session at
// a time. If stop is never called, the client sends them until it is closed.
//
// The pings of a session prove too little for that. A server that is cut off from the leader of the ensemble goes on
// answering them for a while, by default up to 10 s, while the leader expires the session. Quorum heartbeats are
// transactions that change nothing, ten in a session timeout unless the client writes anyway. Only answers that a
// majority of the servers proves then keep the session. This holds for everything that the client is granted by a write
// that begins after the call.
//
// See docs/locks.md for the assumptions about the servers.
func (c *Client) QuorumHeartbeats() (stop func()) {
	if c.core.cfg.noHeartbeats {
		return func() {}
	}
	return c.core.connection.requireQuorum()
}

// WithoutQuorumHeartbeats turns quorum heartbeats off. While a server is cut off from its leader two clients can hold a
// lock, or lead, at the same time, as in Java.
func WithoutQuorumHeartbeats() Option {
	return option(func(c *config) { c.noHeartbeats = true })
}

// WithTickTime sets the tickTime of the servers. Only quorum heartbeats use it: the leader learns of a session's
// activity up to half a tick late, and the shorter that is, the longer a lock outlives an outage. The default is half
// of the session timeout, the largest value that servers allow unless minSessionTimeout is set. If it is set, the
// tickTime may be larger, and the option is needed.
func WithTickTime(d time.Duration) Option { return option(func(c *config) { c.tickTime = d }) }
