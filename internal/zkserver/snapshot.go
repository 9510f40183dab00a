package zkserver

// Snapshot is the state of a service at one moment. It shares nothing with the running service.
type Snapshot struct {
	tree        *tree
	zxid        int64
	sessions    map[int64]session
	nextSession int64
}

// Snapshot returns the newest state of all members.
func (s *Service) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.members[0].tree
	for _, m := range s.members {
		if m.tree.applied > newest.applied {
			newest = m.tree
		}
	}
	sessions := make(map[int64]session, len(s.sessions))
	for id, session := range s.sessions {
		kept := *session
		kept.conn, kept.closing = nil, false
		sessions[id] = kept
	}
	return &Snapshot{tree: newest.clone(), zxid: s.zxid, sessions: sessions, nextSession: s.nextSession}
}

// Restore restores a state as from a backup. All connections end and later writes are lost. A client that has seen
// later writes is refused.
func (s *Service) Restore(from *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.announce()
	s.zxid, s.log = from.zxid, nil
	s.epoch = max(s.epoch, from.zxid>>epochShift)
	s.nextSession = max(s.nextSession, from.nextSession) // no id is given twice
	for _, m := range s.members {
		m.disconnect()
		m.tree = from.tree.clone()
		m.tree.configure(s.configuration(), s.now())
	}
	s.sessions = make(map[int64]*session, len(from.sessions))
	for id, restored := range from.sessions {
		s.touch(&restored)
		s.sessions[id] = &restored
	}
}
