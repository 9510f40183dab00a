package zkserver

import (
	"bytes"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// handshake answers the first frame. It returns false if no request may follow.
func (c *conn) handshake(frame []byte) bool {
	r, err := jute.DecodeConnectRequest(frame)
	if err != nil {
		return false
	}
	m := c.member
	readOnly := m.state == stateReadOnly
	if readOnly && !r.ReadOnly {
		return false
	}
	if r.LastZxidSeen > m.tree.applied {
		return false // the client has seen later transactions than this server
	}
	// The connection of the session on this server ends before the password is compared.
	for old := range m.conns {
		if r.SessionID != 0 && old != c && old.session != nil && old.session.id == r.SessionID {
			old.hangUp()
		}
	}
	if c.handshakeMustWait(r.SessionID) {
		c.wait(frame, r.SessionID == 0)
		return true
	}
	c.session = c.findSession(&r)
	if c.session == nil && r.SessionID != 0 && readOnly && m.service.sessions[r.SessionID] != nil {
		return false // a session of the quorum cannot be renewed without it
	}
	answer := jute.ConnectResponse{
		Password:    make([]byte, jute.PasswordSize),
		ReadOnly:    readOnly,
		HasReadOnly: r.HasReadOnly,
	}
	if s := c.session; s != nil {
		s.conn = c
		answer.TimeoutMs = int32(s.timeout.Milliseconds())
		answer.SessionID = s.id
		answer.Password = Password(s.id)
	}
	c.count()
	c.noteAnswer(jute.ReplyHeader{}, sessionBegun)
	c.out.add(func(b []byte) []byte { return jute.AppendConnectResponse(b, &answer) })
	return c.session != nil
}

// findSession returns a new or renewed session for the client, nil if it is refused.
func (c *conn) findSession(r *jute.ConnectRequest) *session {
	m := c.member
	s := m.service
	timeout := min(max(time.Duration(r.TimeoutMs)*time.Millisecond, s.config.MinSessionTimeout),
		s.config.MaxSessionTimeout)
	known := s.sessions
	if m.state == stateReadOnly {
		known = m.local
	}
	if r.SessionID == 0 {
		n := &session{id: s.newSessionID(), timeout: timeout, local: m.state == stateReadOnly}
		s.touch(n)
		known[n.id] = n
		if !n.local {
			s.commit(&txn{})
			m.catchUp()
		}
		return n
	}
	found := known[r.SessionID]
	if found == nil || found.closing || !bytes.Equal(r.Password, Password(r.SessionID)) {
		return nil
	}
	found.timeout = timeout
	s.touch(found)
	return found
}
