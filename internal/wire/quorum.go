package wire

import (
	"fmt"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// The leader of the ensemble keeps the sessions. A follower reports the sessions that have sent it a request only when
// it answers a ping of the leader, twice a tick. So an answer does not prove that the leader keeps the session: a
// follower that is cut off still answers for a while, and the leader expires the session meanwhile.
//
// The answer to a write proves more. Let the write be sent at s. It has passed through the leader of a majority. The
// follower was connected to that leader then, and had its ping at most half a tick before. So the leader has counted
// all requests that the follower had read half a tick before s, which are those that were answered by then. It has kept
// the session for its whole timeout since then, and that was not before they were sent.
//
//	request r   ──sent──●────answered──●
//	leader pings                            ●──── the follower reports the session
//	write w                                        ──sent──●────answered──●  proves: the session lived on at r's sent
//	                                   ├─ half a tick or more ─┤
//
// A handshake needs no such pause: the leader itself is asked about the session. But the leader may be one that has
// lost its majority and does not know yet, so it takes the answer to a write on the same connection, too.

// liveness computes what answers to writes prove. It belongs to one connection and to the goroutine that reads it.
type liveness struct {
	delay         int64    // the longest time until the leader learns of a request that a follower has read
	spacing       int64    // the least time between two marks
	connectSentAt int64    // when the handshake was sent
	marks         [32]mark // a ring
	next          int      // where the next mark goes
	checked       int64    // when the last write that proved something was sent
}

// mark is a request that was answered.
type mark struct{ sent, answered int64 }

// newLiveness returns the liveness of a connection. tick is the tickTime of the servers, 0 if unknown. An unknown tick
// is taken as half of the session timeout: by default servers grant no timeout below two ticks. A known tick may be
// larger.
func newLiveness(timeout, tick time.Duration, connectSentAt int64) liveness {
	if tick <= 0 {
		tick = timeout / 2
	}
	return liveness{delay: int64(tick/2 + timeout/50), spacing: int64(timeout / 50), connectSentAt: connectSentAt}
}

// answered records an answered request.
func (p *liveness) answered(sent, now int64) {
	if last := p.marks[(p.next+len(p.marks)-1)%len(p.marks)]; last.answered == 0 || sent-last.sent >= p.spacing {
		p.marks[p.next] = mark{sent, now}
		p.next = (p.next + 1) % len(p.marks)
	}
}

// wrote returns a time at which the leader kept the session, as the answer to a write sent at sent proves it. ok is
// false for a write that was sent shortly after the last one.
func (p *liveness) wrote(sent int64) (at int64, ok bool) {
	if p.checked != 0 && sent-p.checked < p.spacing/2 {
		return 0, false
	}
	p.checked = sent
	at = p.connectSentAt
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

// RequireQuorum discards the proof of QuorumSilence: until the answer to a write that is sent from now on,
// QuorumSilence returns Silence.
func (c *Conn) RequireQuorum() {
	c.quorumRequiredAt.Store(c.now())
	c.unproved.Store(true)
}

// QuorumSilence returns the time since the last proof that the leader of a majority keeps the session. Only writes
// prove it: see Heartbeat.
func (c *Conn) QuorumSilence() time.Duration {
	if c.unproved.Load() {
		return c.Silence()
	}
	return time.Duration(c.now() - c.quorum.Load())
}

// proved records the proof of a write's answer. Only one goroutine at a time reads.
func (c *Conn) proved(l *link, sent int64) {
	l.provedBy.Store(sent)
	if at, ok := l.liveness.wrote(sent); ok && at > c.quorum.Load() {
		c.quorum.Store(at)
	}
	if c.unproved.Load() && sent >= c.quorumRequiredAt.Load() {
		c.unproved.Store(false)
	}
}

// The division of a session timeout for heartbeats. Two of them must be further apart than liveness.delay.
const (
	heartbeatsIn    = 10 // number of heartbeats in a session timeout
	mostHeartbeats  = 3  // in flight: they must not keep a slow server busy
	maxStalledCalls = 7  // calls of Heartbeat without progress that end the connection, a third of a session timeout
)

// Heartbeat sends a transaction that changes nothing if no write has succeeded for a while; a refused write proves
// nothing. Call it at least twenty times in a session timeout while a recipe relies on the session. A server
// that has lost its leader answers neither the heartbeat nor later requests. Heartbeat ends such a connection early, so
// that another server can save the session.
func (c *Conn) Heartbeat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link
	if c.end != nil || l == nil || l.dead || c.readOnly {
		return
	}
	now, timeout := c.now(), c.timeoutNs.Load()
	switch {
	case l.isStalled():
		l.end(fmt.Errorf("no answer to a quorum heartbeat for %v", time.Duration(now-l.progressSeen).Round(time.Millisecond)))
	case l.heartbeats < mostHeartbeats && now-max(l.beat, l.provedBy.Load()) >= timeout/heartbeatsIn:
		l.heartbeats++
		l.startBatch()
		l.beat = l.batch
		l.encode(&Request{Request: jute.Request{Op: jute.OpMulti}, Handler: heartbeat{l}})
		c.wakeFlusher(l)
	}
}

// isStalled reports whether the server has made no progress for many calls, with a heartbeat in flight. It counts
// calls, not time: a process that was stopped for a while reads the answers only afterwards.
func (l *link) isStalled() bool {
	at := l.lastProgress()
	if l.heartbeats == 0 || at != l.progressSeen {
		l.progressSeen, l.stalledCalls = at, 0
		return false
	}
	l.stalledCalls++
	return l.stalledCalls >= maxStalledCalls
}

// lastProgress returns the later of two times: when the server last read or wrote bytes, and when the oldest unanswered
// request was encoded.
func (l *link) lastProgress() int64 {
	at := max(l.answerReadAt, l.frames.partAt.Load(), l.partAt.Load())
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
