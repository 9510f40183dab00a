package zkserver

import (
	"slices"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// Sweep removes empty containers and nodes with an expired time to live at once. The leader also does so at every
// interval.
func (s *Service) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(s.now())
}

// sweepWhatIsDue sweeps once for each interval that has passed, and stops after a sweep that removes nothing.
func (s *Service) sweepWhatIsDue(now time.Time) {
	for !now.Before(s.nextSweep) {
		removed := s.sweep(now)
		s.nextSweep = s.nextSweep.Add(s.config.SweepInterval)
		if missed := now.Sub(s.nextSweep); missed >= 0 && !removed {
			s.nextSweep = s.nextSweep.Add((missed/s.config.SweepInterval + 1) * s.config.SweepInterval)
		}
	}
}

// sweep reports whether it has removed a node.
func (s *Service) sweep(now time.Time) bool {
	if s.leader == nil || s.closed {
		return false
	}
	t := s.leader.tree
	// The nodes are chosen before any is removed, each in a transaction of its own: the next sweep removes a container
	// that this one makes empty.
	var over []string
	for path := range t.expiring {
		if n := t.nodes[path]; len(n.children) == 0 && s.isOver(n, now) {
			over = append(over, path)
		}
	}
	slices.Sort(over)
	for _, path := range over {
		s.commit(&txn{changes: []change{{op: jute.OpDelete, path: path}}})
	}
	return len(over) > 0
}

// isOver reports whether a sweep removes a node without children: its time to live is over, or it is a container that
// had children, or a container that had none for longer than the service allows.
func (s *Service) isOver(n *node, now time.Time) bool {
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
