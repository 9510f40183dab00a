package zkserver

// Snapshot is the state of a service at one moment. It shares no memory with a service.
type Snapshot struct {
	tree        *tree
	zxid        int64
	sessions    map[int64]session
	nextSession int64
}

// Snapshot returns the state that a quorum has now, or had last.
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

// Restore sets the state to a snapshot, as from a backup. All connections end, later writes are lost, and the service
// refuses a client that has seen them.
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
	}
	s.sessions = make(map[int64]*session, len(from.sessions))
	for id, restored := range from.sessions {
		s.touch(&restored)
		s.sessions[id] = &restored
	}
}
