package zkserver

import "maps"

// Snapshot is the state of a service at one moment.
type Snapshot struct {
	tree     *tree
	zxid     int64
	sessions map[int64]*session
}

// Snapshot gives the state of now.
func (s *Service) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.members[0].tree
	if s.leader != nil {
		t = s.leader.tree
	}
	return &Snapshot{tree: t.clone(), zxid: s.zxid, sessions: maps.Clone(s.sessions)}
}

// Restore brings a state back, as from a backup: all connections end, what was written since is lost, and a client that
// has seen it is turned away.
func (s *Service) Restore(from *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.announce()
	s.zxid, s.log = from.zxid, nil
	s.sessions = maps.Clone(from.sessions)
	for _, m := range s.members {
		m.disconnect()
		m.tree = from.tree.clone()
	}
	for _, session := range s.sessions {
		session.conn = nil
		s.touch(session)
	}
}
