package zkserver

import (
	"slices"

	"github.com/go-zookeeper/zk"
)

// Changes returns a channel that is closed when a View may have changed.
func (s *Service) Changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = make(chan struct{})
	}
	return s.seen
}

// announce wakes the waiters of Changes.
func (s *Service) announce() {
	if s.seen != nil {
		close(s.seen)
		s.seen = nil
	}
}

// View is a member's copy of a node.
type View struct {
	Data     []byte
	Stat     zk.Stat
	Children []string // sorted
	ACL      []zk.ACL
}

// View returns the member's copy of a node, if it exists.
func (m *Member) View(path string) (View, bool) {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	n := m.tree.get(path)
	if n == nil {
		return View{}, false
	}
	return View{
		Data:     slices.Clone(n.data),
		Stat:     n.stat(),
		Children: sortedKeys(n.children),
		ACL:      slices.Clone(n.acl),
	}, true
}

// Watches counts the connections to the member that watch exactly this path, in any mode.
func (m *Member) Watches(path string) int {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	watching := map[*conn]struct{}{}
	for _, t := range []*watchTable{m.dataWatches, m.childWatches} {
		for c := range t.byPath[path] {
			watching[c] = struct{}{}
		}
	}
	return len(watching)
}
