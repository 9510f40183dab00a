package zkserver

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// session is a client's session, which may outlive its connections.
type session struct {
	id      int64
	timeout time.Duration
	expires time.Time // when it expires: a tick
	conn    *conn     // the last connection, which may have ended; nil after Move
	local   bool      // only a read-only member has the session
	closing bool      // it is over, and the leader needs a quorum to end it
}

// firstSession returns the first session id of a server: its number and the time of its start.
func (s *Service) firstSession() int64 {
	const serverShift, timeShift = 56, 16
	return 1<<serverShift | s.began.UnixMilli()<<timeShift&(1<<serverShift-1)
}

func (s *Service) newSessionID() int64 {
	id := s.nextSession
	s.nextSession++
	return id
}

// touch gives a session its full timeout again, unless its time is over.
func (s *Service) touch(session *session) {
	if session.closing {
		return
	}
	session.expires = s.tickAfter(s.now().Add(session.timeout))
}

// expireSessions ends the sessions whose time is over. Without a leader only the local sessions of a member end.
func (s *Service) expireSessions(now time.Time) {
	for _, m := range s.members {
		for _, id := range sortedIDs(m.local) {
			if session := m.local[id]; !now.Before(session.expires) {
				delete(m.local, id)
				session.conn.hangUp()
			}
		}
	}
	if s.leader == nil && s.cutLeader == nil {
		return
	}
	for _, id := range sortedIDs(s.sessions) {
		session := s.sessions[id]
		switch {
		case s.kept[id] > 0 || now.Before(session.expires):
		case s.leader != nil:
			s.closeSession(session)
		default:
			session.closing, s.cutLeader.outstanding = true, true
		}
	}
}

// closeSession commits the transaction that removes a session and its nodes and closes its connections.
func (s *Service) closeSession(session *session) {
	x := txn{closes: session.id}
	for _, path := range sortedKeys(s.leader.tree.ephemerals[session.id]) {
		x.changes = append(x.changes, change{op: jute.OpDelete, path: path})
	}
	delete(s.sessions, session.id)
	s.commit(&x)
}

// Sessions returns the ids of the sessions, in the order of their creation.
func (s *Service) Sessions() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sortedIDs(s.sessions)
}

func sortedIDs[V any](m map[int64]V) []int64 { return slices.Sorted(maps.Keys(m)) }

// Expire ends a session, as if its time were over.
func (s *Service) Expire(id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.sessions[id]
	switch {
	case !ok:
		return ErrNoSession
	case s.leader == nil:
		return ErrNoQuorum
	}
	s.closeSession(session)
	return nil
}

// Keep prevents a session from expiring until release is called.
func (s *Service) Keep(id int64) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[id] == nil {
		return nil, ErrNoSession
	}
	s.kept[id]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kept[id]--; s.kept[id] == 0 {
			delete(s.kept, id)
		}
	}), nil
}

// Move moves a session to another server, as if its client had connected there: its connection ends with the next write
// on it.
func (s *Service) Move(id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.sessions[id]
	if !ok {
		return ErrNoSession
	}
	session.conn = nil
	return nil
}

// passwordSecret is the secret for passwords. All servers have the same, so that a session can move between them.
const passwordSecret = 0xB3415C00

// Password returns the password of a session: the first bytes of Java's random numbers with the id as the seed.
func Password(id int64) []byte {
	const multiplier, increment, mask = 0x5DEECE66D, 0xB, 1<<48 - 1
	state := (uint64(id^passwordSecret) ^ multiplier) & mask
	p := make([]byte, 0, jute.PasswordSize)
	for len(p) < jute.PasswordSize {
		state = (state*multiplier + increment) & mask
		p = binary.LittleEndian.AppendUint32(p, uint32(state>>16))
	}
	return p
}
