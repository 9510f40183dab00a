package zkserver

import (
	"slices"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Sweep removes containers that are empty again and nodes whose time to live is over, as the service does by itself now
// and then.
func (s *Service) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(s.now())
}

func (s *Service) sweep(now time.Time) {
	if s.leader == nil || s.closed {
		return
	}
	t := s.leader.tree
	// Each is a transaction of its own, and chosen before any of them: a container that becomes empty by this sweep is
	// left to the next.
	var over []string
	for path := range t.expiring {
		n := t.nodes[path]
		if len(n.children) > 0 {
			continue
		}
		if isTTL(n.owner) && now.UnixMilli()-n.mtime > ttlOf(n.owner) || n.owner == ownerContainer && n.creates > 0 {
			over = append(over, path)
		}
	}
	slices.Sort(over)
	for _, path := range over {
		s.commit(&txn{changes: []change{{op: jute.OpDelete, path: path}}})
	}
}
