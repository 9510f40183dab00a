package wire

import (
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// A session lives at the leader of the ensemble. A follower passes on which sessions it has heard from only when it
// answers a ping of the leader, twice a tick. So an answer does not prove that the leader keeps the session: a follower
// that is cut off goes on answering for a while, and the leader expires the session meanwhile.
//
// The answer to a write proves more. Let it be sent at s. It has passed through the leader of a majority, which the
// follower was connected to then, and pinged at most half a tick before. So the leader knows of all requests that the
// follower had read half a tick before s: of those that were answered by then. It has kept the session for its whole
// timeout since it heard of them, which was not before they were sent.
//
//	request r   ──sent──●────answered──●
//	leader pings                            ●──── the follower reports the session
//	write w                                        ──sent──●────answered──●  proves: the session lived on at r's sent
//	                                   ├─ half a tick or more ─┤
//
// A handshake needs no such pause: the leader itself is asked about the session. But the leader may be one that has
// lost its majority and does not know yet, so it takes the answer to a write on the same connection, too.

// liveness computes what the answers to writes prove. It belongs to one connection and to the goroutine that reads it.
type liveness struct {
	delay   int64    // of what the leader hears, at most
	spacing int64    // between marks
	greeted int64    // when the handshake was sent
	marks   [32]mark // a ring
	next    int      // where the next mark goes
	checked int64    // when the last write was sent that was looked at
}

// mark is a request that was answered.
type mark struct{ sent, answered int64 }

// newLiveness returns the liveness of a connection. tick is the tickTime of the servers, 0 if it is not known: then it
// is half of the session timeout at most, the smallest timeout that servers grant unless they are configured otherwise.
// One that is known may be larger, where they are.
func newLiveness(timeout, tick time.Duration, greeted int64) liveness {
	if tick <= 0 {
		tick = timeout / 2
	}
	return liveness{delay: int64(tick/2 + timeout/50), spacing: int64(timeout / 50), greeted: greeted}
}

// answered notes that a request was answered.
func (p *liveness) answered(sent, now int64) {
	if last := p.marks[(p.next+len(p.marks)-1)%len(p.marks)]; last.answered == 0 || sent-last.sent >= p.spacing {
		p.marks[p.next] = mark{sent, now}
		p.next = (p.next + 1) % len(p.marks)
	}
}

// wrote returns the time at which the session lived, as the answer to a write proves it. It reports false for a write
// that was sent shortly after the last one.
func (p *liveness) wrote(sent int64) (at int64, ok bool) {
	if p.checked != 0 && sent-p.checked < p.spacing/2 {
		return 0, false
	}
	p.checked = sent
	at = p.greeted
	for i := range p.marks {
		m := p.marks[(p.next+2*len(p.marks)-1-i)%len(p.marks)]
		if m.answered <= sent-p.delay {
			at = max(at, m.sent)
			break
		}
	}
	return at, true
}

// isWrite reports whether a request goes through the leader and a majority.
func isWrite(op jute.Op) bool {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL, jute.OpDelete, jute.OpSetData,
		jute.OpSetACL, jute.OpMulti, jute.OpReconfig:
		return true
	}
	return false
}

// Rely begins a time in which somebody relies on QuorumSilence. Until the answer to a write that is sent from now on,
// that is Silence.
func (c *Conn) Rely() {
	c.reliedAt.Store(c.now())
	c.unproved.Store(true)
}

// QuorumSilence returns for how long nothing has proved that the leader of a majority keeps the session. It takes
// writes to prove that: see Heartbeat.
func (c *Conn) QuorumSilence() time.Duration {
	if c.unproved.Load() {
		return c.Silence()
	}
	return time.Duration(c.now() - c.quorum.Load())
}

// proved notes what the answer to a write proves. Only one goroutine at a time reads.
func (c *Conn) proved(l *link, sent int64) {
	l.provedBy.Store(sent)
	if at, ok := l.liveness.wrote(sent); ok && at > c.quorum.Load() {
		c.quorum.Store(at)
	}
	if c.unproved.Load() && sent >= c.reliedAt.Load() {
		c.unproved.Store(false)
	}
}

// How a session timeout is divided for heartbeats. They come often enough for two of them to be further apart than the
// leader hears late.
const (
	heartbeatsIn   = 10 // as many as fit into a session timeout
	mostHeartbeats = 3  // under way: a slow server is not to be kept busy with them
	muteCalls      = 7  // so many calls of Heartbeat without an answer end the connection, a third of a session timeout
)

// Heartbeat sends a transaction that changes nothing if no write has proved anything for a while: a write that is
// refused does not. Call it at least twenty times in a session timeout while somebody relies on the session. A server
// that has lost its leader answers neither that nor what is sent behind it. It ends such a connection early, so that
// another server can save the session.
func (c *Conn) Heartbeat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link
	if c.end != nil || l == nil || l.dead || c.readOnly {
		return
	}
	now, timeout := c.now(), c.timeoutNs.Load()
	switch {
	case l.isMute():
		l.cut()
	case l.heartbeats < mostHeartbeats && now-max(l.beat, l.provedBy.Load()) >= timeout/heartbeatsIn:
		l.heartbeats++
		l.startBatch()
		l.beat = l.batch
		l.encode(&Request{Request: jute.Request{Op: jute.OpMulti}, Handler: heartbeat{l}})
		c.wakeFlusher(l)
	}
}

// isMute reports whether the server has done nothing for us for many calls, with a heartbeat under way. Calls are
// counted, not time: a process that gets no time for a while finds the answers only afterwards.
func (l *link) isMute() bool {
	at := l.movedAt()
	if l.heartbeats == 0 || at != l.moved {
		l.moved, l.mute = at, 0
		return false
	}
	l.mute++
	return l.mute >= muteCalls
}

// movedAt returns when the server did something for us last, or the oldest request was encoded that it owes an answer.
func (l *link) movedAt() int64 {
	at := max(l.landedAt, l.frames.partAt.Load(), l.partAt.Load())
	if first := l.flight.peek(); first != nil {
		at = max(at, first.sent)
	}
	return at
}

// heartbeat handles the end of a heartbeat: its answer, or the loss of its connection.
type heartbeat struct{ l *link }

func (h heartbeat) Answered(*Request) {
	h.l.c.mu.Lock()
	defer h.l.c.mu.Unlock()
	h.l.heartbeats--
}
