package zkserver

import (
	"slices"
	"time"
)

// elect chooses the leader and the serving members, after members have started, stopped or been partitioned, or have
// noticed that they are cut off.
// A leader with a quorum stays the leader.
func (s *Service) elect() {
	defer s.announce()
	s.settleLeader()
	var resumed []*Member
	for _, m := range s.members {
		if s.updateState(m) {
			resumed = append(resumed, m)
		}
	}
	if s.leader == nil {
		s.electNew()
	}
	s.trim()
	s.wakeClock()
	for _, m := range resumed {
		m.answerWaiting()
	}
}

func (s *Service) quorum() int { return s.ensemble.voters()/2 + 1 }

// settleLeader decides whether the current leader keeps its quorum. A leader that is cut off leads again if the
// partition ends before any member has noticed it.
func (s *Service) settleLeader() {
	leader := s.leader
	if leader == nil {
		leader = s.cutLeader
	}
	s.leader, s.cutLeader = nil, nil
	switch {
	case leader == nil || !leader.actsAsLeader() || !leader.votes():
	case s.followersOf(leader, true) >= s.quorum():
		s.leader = leader
	case s.config.SyncLimit == 0:
	case leader.cutOff(), s.followersOf(leader, true)+s.followersOf(leader, false) >= s.quorum():
		s.cutLeader = leader // it has lost its followers and has not noticed that yet
	}
}

// followersOf counts followers of a leader that have a vote. With sameSide it counts the members on its side of the
// partition that follow it or may follow it. Otherwise it counts the members on other sides that have not noticed yet
// that they are cut off.
func (s *Service) followersOf(leader *Member, sameSide bool) int {
	n := 0
	for _, m := range s.members {
		if m.up && m.votes() && (m.side == leader.side) == sameSide && (m.follows(leader) || sameSide && m.leader == nil) {
			n++
		}
	}
	return n
}

// updateState sets the state of a member by the state of its leader. resumed means that the member serves again after
// it was cut off.
func (s *Service) updateState(m *Member) (resumed bool) {
	leader := m.leader
	switch {
	case !m.up:
		m.leave(stateDown)
		return false
	case leader == nil:
		m.leave(s.idle())
	case leader == s.leader && m.reaches():
		return m.resume()
	case s.config.SyncLimit > 0 && (leader.side != m.side || m.reaches() && (leader == s.cutLeader || leader.cutOff())):
		m.state = stateCutOff
		return false
	default:
		m.leave(s.idle())
	}
	if s.leader != nil && s.leader.side == m.side {
		m.follow(s.leader)
	}
	return false
}

// idle is the state of a member that looks for a quorum.
func (s *Service) idle() state {
	if s.config.ReadOnly {
		return stateReadOnly
	}
	return stateLooking
}

// electNew elects a leader among the members that look for one, if those of one side are a quorum.
func (s *Service) electNew() {
	sides := map[int][]*Member{}
	for _, m := range s.members {
		if m.up && m.leader == nil {
			sides[m.side] = append(sides[m.side], m)
		}
	}
	for _, candidates := range sides {
		votes := 0
		for _, m := range candidates {
			if m.votes() {
				votes++
			}
		}
		if votes >= s.quorum() {
			s.lead(candidates)
		}
	}
}

// lead makes one of the members the leader of all of them. A new leader begins a new epoch, and gives each session its
// full timeout again.
func (s *Service) lead(members []*Member) {
	voters := slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return !m.votes() })
	leader := voters[0]
	for _, m := range voters {
		if m.lag == 0 {
			leader = m
			break
		}
	}
	leader.lag = 0
	s.leader, s.cutLeader = leader, nil
	s.nextSweep = s.now().Add(s.config.SweepInterval) // a new leader starts the interval again
	if !s.standalone() {
		s.epoch++
	}
	for _, m := range members { // a follower starts with all transactions of its leader
		m.follow(leader)
	}
	if !s.standalone() {
		s.zxid = s.epoch << epochShift
	}
	for _, session := range s.sessions {
		session.closing = false
		s.touch(session)
	}
}

// handOver makes another member the leader, if there is one. No client loses its connection.
func (s *Service) handOver() {
	var members []*Member
	for _, m := range s.members {
		if m.leader == s.leader && m.serving() {
			members = append(members, m)
		}
	}
	s.lead(members)
}

// epochShift is the position of the epoch in a zxid.
const epochShift = 32

// follow makes a member follow a leader, and applies all transactions so far. The member may lag later.
func (m *Member) follow(leader *Member) {
	if m.state != stateServing {
		m.disconnect()
	}
	m.state, m.leader, m.leaderSeen = stateServing, leader, m.service.now()
	m.epoch, m.outstanding = m.service.epoch, false
	clear(m.unreported)
	m.catchUp()
}

// leave makes a member leave its leader and close the connections of its clients.
func (m *Member) leave(to state) {
	if m.state != to {
		m.disconnect()
	}
	m.state, m.leader, m.outstanding = to, nil, false
	clear(m.unreported)
}

// resume makes a member that was cut off serve again. It returns false if the member was not cut off.
func (m *Member) resume() bool {
	if m.serving() {
		return false
	}
	m.state, m.outstanding, m.leaderSeen = stateServing, false, m.service.now()
	m.reportDue = m.service.halfTickAfter(m.service.now())
	if m.lag == 0 {
		m.catchUp()
	}
	return true
}

// actsAsLeader reports whether a member acts as the leader. This includes a leader that has not noticed yet that its
// quorum is gone.
func (m *Member) actsAsLeader() bool { return m.up && m.leader == m }

// follows reports whether a member has followed a leader since the leader began to lead.
func (m *Member) follows(leader *Member) bool {
	return m.leader == leader && leader.actsAsLeader() && m.epoch == leader.epoch
}

// reaches reports whether a member can reach its leader.
func (m *Member) reaches() bool {
	return m.leader != nil && m.follows(m.leader) && m.leader.side == m.side
}

// noteLeaders sets leaderSeen of each member: the last time at which a follower received something from its leader, or
// a leader from its quorum. It runs before the members are partitioned.
func (s *Service) noteLeaders() {
	seen := s.halfTickBefore(s.now())
	for _, m := range s.members {
		if m.reaches() && (m.leader == s.leader || m.leader != m) && seen.After(m.leaderSeen) {
			m.leaderSeen = seen
		}
	}
}

// cutOffDeadline returns the time when a member that is cut off notices it. A follower notices it when it has received
// nothing from its leader for the limit. A leader notices it at the first tick after it has received nothing from its
// quorum for the limit, and so do its followers.
func (m *Member) cutOffDeadline() time.Time {
	s := m.service
	if m.leader != m && m.reaches() {
		return m.leader.cutOffDeadline()
	}
	limit := m.leaderSeen.Add(time.Duration(s.config.SyncLimit) * s.config.Tick)
	if m.leader == m {
		return s.tickAfter(limit.Add(-1))
	}
	return limit
}

// nextCutOffDeadline returns the earliest cutOffDeadline, if a member is cut off.
func (s *Service) nextCutOffDeadline() (next time.Time, ok bool) {
	for _, m := range s.members {
		if m.cutOff() {
			if t := m.cutOffDeadline(); !ok || t.Before(next) {
				next, ok = t, true
			}
		}
	}
	return next, ok
}

// endCutOffs makes the members that are cut off look for a new leader when their time is over.
func (s *Service) endCutOffs(now time.Time) {
	var over []*Member
	for _, m := range s.members {
		if m.cutOff() && !now.Before(m.cutOffDeadline()) {
			over = append(over, m)
		}
	}
	if over == nil {
		return
	}
	for _, m := range over {
		m.leave(s.idle())
	}
	s.elect()
}
