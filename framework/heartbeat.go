package framework

import "time"

// heartbeats decides when a client sends quorum heartbeats.
type heartbeats int

const (
	heartbeatsOnDemand heartbeats = iota
	heartbeatsAlways
	heartbeatsNever
)

// QuorumHeartbeats makes the session as safe to rely on as a lock needs it, until stop is called. It returns at once
// and is safe for concurrent use. Locks and leaders use it by themselves; use it for other recipes that grant something
// to one session at a time.
//
// The pings of a session prove too little for that. A server that is cut off from the leader of the ensemble goes on
// answering them for a while, by default up to 10 s, while the leader expires the session. Quorum heartbeats are
// transactions that change nothing, ten in a session timeout unless the client writes anyway. Only answers that a
// majority stands behind then keep the [Session]: its context ends before the leader can expire it. What the client is
// granted by a write that begins after the call is as safe as that.
//
// See docs/locks.md for what this takes for granted of the servers.
func (c *Client) QuorumHeartbeats() (stop func()) {
	if c.core.cfg.heartbeats != heartbeatsOnDemand {
		return func() {}
	}
	return c.core.connection.rely()
}

// WithQuorumHeartbeats has the client send quorum heartbeats all the time, and not only while it waits for a lock, has
// one, or takes part in an election: see [Client.QuorumHeartbeats].
func WithQuorumHeartbeats() Option {
	return option(func(c *config) { c.heartbeats = heartbeatsAlways })
}

// WithoutQuorumHeartbeats turns quorum heartbeats off. While a server is cut off from its leader two clients can hold a
// lock, or lead, at the same time, as in Java.
func WithoutQuorumHeartbeats() Option {
	return option(func(c *config) { c.heartbeats = heartbeatsNever })
}

// WithTickTime sets the tickTime of the servers. Only quorum heartbeats use it: a session's answer reaches the leader
// up to half a tick late, and the shorter that is, the longer a lock outlives an outage. The default is half of the
// session timeout, the largest value that servers allow unless minSessionTimeout is set: then the option is needed, and
// may be larger.
func WithTickTime(d time.Duration) Option { return option(func(c *config) { c.tickTime = d }) }
