package zkserver

import (
	"crypto/x509"
	"net"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// state is the state of a member.
type state int

const (
	stateDown     state = iota
	stateLooking        // it looks for a quorum and serves nobody
	stateReadOnly       // it has no quorum and serves clients that accept reads only
	stateCutOff         // it has lost its leader, or as a leader its quorum, and has not noticed that yet
	stateServing
)

// Member is a server of a service: a copy of the tree and the connections to it. Its methods are safe for concurrent
// use.
type Member struct {
	service *Service
	number  int

	// The mutex of the service guards the fields below.
	up           bool
	side         int // the member's side of a partition
	state        state
	lag          time.Duration // the delay of the writes of other members; negative means for ever
	tree         *tree
	dataWatches  *watchTable
	childWatches *watchTable
	conns        map[*conn]struct{}
	local        map[int64]*session // the sessions that started while the member was read-only
	leader       *Member            // the leader that it follows: itself if it leads, nil if it looks for one
	epoch        int64              // the epoch of the leader when the member began to follow
	leaderSeen   time.Time          // when it last heard of its leader, or as a leader of its quorum, before a partition
	outstanding  bool               // it leads without a quorum, and a transaction waits for one
	unreported   map[int64]*session // the sessions with activity since the last report to the leader
	reportDue    time.Time          // when the next report is due
	received     int64
	sent         int64
	traceMask    int64             // the value that stmk has set; it traces nothing
	users        map[string]string // who may log in by SASL, with their passwords; nil without SASL
}

func newMember(s *Service, number int) *Member {
	m := &Member{
		service:    s,
		number:     number,
		up:         true,
		tree:       newTree(s.configuration(), s.began),
		conns:      map[*conn]struct{}{},
		local:      map[int64]*session{},
		unreported: map[int64]*session{},
		traceMask:  defaultTraceMask,
	}
	if s.config.Users != nil {
		m.users = knownUsers(s.config.Users)
	}
	m.dataWatches, m.childWatches = newWatchTable(s.config.Version), newWatchTable(s.config.Version)
	return m
}

func (m *Member) serving() bool { return m.state == stateServing }

// cutOff reports whether the member is in stateCutOff.
func (m *Member) cutOff() bool { return m.state == stateCutOff }

// open reports whether the member answers clients.
func (m *Member) open() bool { return m.state >= stateReadOnly && !m.service.closed }

// Serve serves a connection until either side ends it or the member stops, and closes it.
func (m *Member) Serve(nc net.Conn) { m.ServeCertified(nc, nil) }

// ServeCertified is Serve for a client with a verified certificate; it may be nil.
func (m *Member) ServeCertified(nc net.Conn, cert *x509.Certificate) {
	ids := identities{{schemeIP, loopback}}
	if m.service.config.NoACL {
		ids.add(everybody)
	}
	if cert != nil {
		subject, err := subjectOf(cert)
		if err != nil {
			nc.Close() //nolint:errcheck // nothing was sent
			return
		}
		ids.add(identity{schemeX509, subject})
	}
	m.service.mu.Lock()
	if m.service.closed || !m.up {
		m.service.mu.Unlock()
		nc.Close() //nolint:errcheck // nothing was sent
		return
	}
	m.service.connections++
	c := newConn(m, nc, m.service.connections, ids)
	m.conns[c] = struct{}{}
	m.service.serving[c] = struct{}{}
	m.service.wg.Add(1)
	m.service.mu.Unlock()
	defer m.service.wg.Done()
	c.serve()
	m.service.mu.Lock()
	delete(m.service.serving, c)
	m.service.mu.Unlock()
}

// disconnect ends all connections.
func (m *Member) disconnect() {
	for c := range m.conns {
		c.hangUp()
	}
	clear(m.local)
}

// catchUp applies all transactions that the member lacks.
func (m *Member) catchUp() { m.applyUntil(m.service.now()) }

func (m *Member) applyUntil(t time.Time) {
	for i := m.service.missedBy(m); i < len(m.service.log) && !m.service.log[i].at.After(t); i++ {
		m.apply(&m.service.log[i].txn)
	}
}

// apply applies a transaction. The end of a session ends its connections to the member.
func (m *Member) apply(x *txn) []jute.Result {
	results := m.tree.apply(x, m)
	if x.closes == 0 {
		return results
	}
	for c := range m.conns {
		if c.session != nil && c.session.id == x.closes && !c.leaving {
			c.hangUp()
		}
	}
	return results
}

// Stop stops the member as a crash does: its connections end, its data stays.
func (m *Member) Stop() {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	m.up = false
	m.service.elect()
}

// Start starts a stopped member again.
func (m *Member) Start() {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	if m.up {
		return
	}
	m.up = true
	m.service.elect()
}

// Leads reports whether the member is the leader.
func (m *Member) Leads() bool {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	return m.service.leader == m
}

// Serving reports whether the member is part of a quorum.
func (m *Member) Serving() bool {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	return m.serving()
}

// Connected reports whether a session is connected to the member.
func (m *Member) Connected(sessionID int64) bool {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	for c := range m.conns {
		if c.session != nil && c.session.id == sessionID && !c.moved() {
			return true
		}
	}
	return false
}

// SetLag delays the writes of other members by d, or for ever if d is negative. The member catches up when one of its
// own clients writes or syncs. A leader first hands the leadership over, if another member can take it.
func (m *Member) SetLag(d time.Duration) {
	s := m.service
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.announce()
	m.lag = d
	if d == 0 {
		if m.serving() {
			m.catchUp()
			s.trim()
		}
		return
	}
	if s.leader == m {
		s.handOver()
	}
	s.wakeClock()
}

// Part partitions the members: sides has the number of each member's side. Members of different sides cannot reach each
// other; the side with a majority serves. A member that loses its leader notices it after the limit of the config.
// Until then it serves its clients as far as it can. heal ends the partition, unless there is a later one.
func (s *Service) Part(sides []int) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part(sides)
	s.parted++
	mine := s.parted
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.parted == mine {
			s.part(make([]int, len(s.members)))
		}
	}
}

func (s *Service) part(sides []int) {
	defer s.announce()
	s.noteLeaders()
	for i, m := range s.members {
		m.side = sides[i]
	}
	s.elect()
}
