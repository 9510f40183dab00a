package zkserver

import "time"

// The sessions are the leader's. A follower answers the leader's next ping with the sessions that it has
// heard from, and the leader gives those sessions their whole timeout again. Pings come every half tick.

// hearFrom records a sign of life of a session's client.
func (m *Member) hearFrom(session *session) {
	s := m.service
	switch {
	case session.local, m == s.leader, m == s.cutLeader:
		s.touch(session)
	default:
		if len(m.heardFrom) == 0 {
			m.reportDue = s.halfTickAfter(s.now())
			s.wakeClock()
		}
		m.heardFrom[session.id] = session
	}
}

// report renews at the leader the sessions that the member has heard from, if that is due, and returns when it is due
// next.
func (m *Member) report(now time.Time) (next time.Time, more bool) {
	s := m.service
	if len(m.heardFrom) == 0 || !m.reaches() || m.leader != s.leader && m.leader != s.cutLeader {
		return time.Time{}, false
	}
	if now.Before(m.reportDue) {
		return m.reportDue, true
	}
	for id, session := range m.heardFrom {
		expires := s.tickAfter(m.reportDue.Add(session.timeout))
		if s.sessions[id] == session && !session.closing && expires.After(session.expires) {
			session.expires = expires
		}
	}
	clear(m.heardFrom)
	return time.Time{}, false
}

// reportWhatIsDue makes all due reports and returns the time of the next report, if there is one.
func (s *Service) reportWhatIsDue(now time.Time) (next time.Time, more bool) {
	for _, m := range s.members {
		if due, ok := m.report(now); ok && (!more || due.Before(next)) {
			next, more = due, true
		}
	}
	return next, more
}
