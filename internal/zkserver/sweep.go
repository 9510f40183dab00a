package zkserver

import (
	"slices"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Sweep removes containers that have become empty and nodes whose time to live is over. The leader also sweeps at every
// interval.
func (s *Service) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(s.now())
}

// sweepDue sweeps once for each interval that has passed, up to the first sweep that removes nothing: those after it
// would remove nothing either.
func (s *Service) sweepDue(now time.Time) {
	for !now.Before(s.nextSweep) {
		removed := s.sweep(now)
		s.nextSweep = s.nextSweep.Add(s.config.SweepInterval)
		if missed := now.Sub(s.nextSweep); missed >= 0 && !removed {
			s.nextSweep = s.nextSweep.Add((missed/s.config.SweepInterval + 1) * s.config.SweepInterval)
		}
	}
}

// sweep sweeps once and reports whether it has removed a node.
func (s *Service) sweep(now time.Time) bool {
	if s.leader == nil || s.closed {
		return false
	}
	t := s.leader.tree
	// Each removal is its own transaction. All nodes are chosen before the first one: a container that becomes empty in
	// this sweep remains until the next.
	var over []string
	for path := range t.expiring {
		if n := t.nodes[path]; len(n.children) == 0 && s.isExpired(n, now) {
			over = append(over, path)
		}
	}
	slices.Sort(over)
	for _, path := range over {
		s.commit(&txn{changes: []change{{op: jute.OpDelete, path: path}}})
	}
	return len(over) > 0
}

// isExpired reports whether a sweep removes a node without children: a node whose time to live is over, a container
// that had children, or a container that never had a child for longer than the service allows.
func (s *Service) isExpired(n *node, now time.Time) bool {
	age := now.UnixMilli() - n.mtime
	switch {
	case isTTL(n.owner):
		return age > ttlOf(n.owner)
	case n.owner != ownerContainer:
		return false
	case n.creates > 0:
		return true
	}
	limit := s.config.MaxNeverUsed.Milliseconds()
	return limit > 0 && age > limit
}
