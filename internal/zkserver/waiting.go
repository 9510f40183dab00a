package zkserver

import (
	"bytes"

	"github.com/gocurator/curator/internal/jute"
)

// On a member that is cut off, requests that need the leader wait. Later requests of the same client wait behind them,
// so that the answers of a session keep their order. The frames are answered when the partition ends, or never.

// mustWait reports whether a request cannot be answered now.
func (c *conn) mustWait(op jute.Op) bool {
	if len(c.waiting) > 0 {
		return true
	}
	m := c.member
	if !m.cutOff() || !isWrite(op) || c.session.local {
		return false
	}
	// A leader answers a sync as long as no transaction is waiting for its quorum.
	return op != jute.OpSync || !m.reaches() || m.leader.outstanding
}

// handshakeMustWait reports whether a handshake cannot be answered now. A leader that is cut off from its quorum still
// renews sessions. A new session is a transaction.
func (c *conn) handshakeMustWait(sessionID int64) bool {
	m := c.member
	return m.cutOff() && (sessionID == 0 || !m.reaches() || m.leader != m.service.cutLeader)
}

// wait keeps a frame until the member is no longer cut off.
func (c *conn) wait(frame []byte, transaction bool) {
	if transaction && c.member.reaches() {
		c.member.leader.outstanding = true
	}
	c.waiting = append(c.waiting, bytes.Clone(frame))
}

// answerWaiting answers the waiting frames, connection by connection.
func (m *Member) answerWaiting() {
	for _, c := range m.connections() {
		frames := c.waiting
		c.waiting = nil
		for _, frame := range frames {
			if !c.connected() {
				break
			}
			if !c.answerFrame(frame) {
				c.forget()
				c.out.finish()
				break
			}
		}
	}
}
