package zkserver

import (
	"slices"

	"github.com/go-zookeeper/zk"
)

// Changes returns a channel that is closed at the next change of a node, watch, session or member.
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

// NodeState is the state of a node on a member.
type NodeState struct {
	Data     []byte
	Stat     zk.Stat
	Children []string // sorted
	ACL      []zk.ACL
}

// Node returns the state of a node on the member, if it exists there.
func (m *Member) Node(path string) (NodeState, bool) {
	m.service.mu.Lock()
	defer m.service.mu.Unlock()
	n := m.tree.get(path)
	if n == nil {
		return NodeState{}, false
	}
	return NodeState{
		Data:     slices.Clone(n.data),
		Stat:     n.stat(),
		Children: sortedKeys(n.children),
		ACL:      slices.Clone(n.acl),
	}, true
}

// Watches returns the number of connections to the member that watch a path itself, in any mode.
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
