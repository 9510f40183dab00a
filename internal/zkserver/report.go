package zkserver

import "time"

// The leader decides when sessions expire. A follower answers each ping of the leader with the sessions that have sent
// it something since the last ping, and the leader gives those sessions their full timeout again. Pings come every half
// tick.

// noteActivity records that the client of a session sent something.
func (m *Member) noteActivity(session *session) {
	s := m.service
	switch {
	case session.local, m == s.leader, m == s.cutLeader:
		s.touch(session)
	default:
		if len(m.unreported) == 0 {
			m.reportDue = s.halfTickAfter(s.now())
			s.wakeClock()
		}
		m.unreported[session.id] = session
	}
}

// report reports the sessions of the member to the leader if that is due. Otherwise it returns the time at which it is
// due, with more false if there is nothing to report.
func (m *Member) report(now time.Time) (next time.Time, more bool) {
	s := m.service
	if len(m.unreported) == 0 || !m.reaches() || m.leader != s.leader && m.leader != s.cutLeader {
		return time.Time{}, false
	}
	if now.Before(m.reportDue) {
		return m.reportDue, true
	}
	for id, session := range m.unreported {
		expires := s.tickAfter(m.reportDue.Add(session.timeout))
		if s.sessions[id] == session && !session.closing && expires.After(session.expires) {
			session.expires = expires
		}
	}
	clear(m.unreported)
	return time.Time{}, false
}

// reportSessions calls report for all members, and returns the time of the next report, if there is one.
func (s *Service) reportSessions(now time.Time) (next time.Time, more bool) {
	for _, m := range s.members {
		if due, ok := m.report(now); ok && (!more || due.Before(next)) {
			next, more = due, true
		}
	}
	return next, more
}
