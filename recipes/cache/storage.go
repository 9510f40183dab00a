package cache

import (
	"iter"
	"maps"

	"github.com/go-zookeeper/zk"
)

// ChildData is the cached state of a node. It is immutable: callers must not change Data either. In Java: ChildData.
type ChildData struct {
	Path string
	Stat zk.Stat
	Data []byte
}

// Storage stores the nodes of a cache. The cache serializes the calls of Put, Remove and Clear, and makes no other call
// at the same time. Other calls may be concurrent. The methods must not call the cache, and must not block. A panic in
// one of them ends the program. In Java: CuratorCacheStorage.
type Storage interface {
	// Put stores a node and returns the previous node at its path, or nil.
	Put(node *ChildData) (old *ChildData)
	// Remove removes the node at path and returns it, or nil if there is none.
	Remove(path string) (old *ChildData)
	// Get returns the node at path, or nil if there is none.
	Get(path string) *ChildData
	// All returns an iterator over the nodes, in any order.
	All() iter.Seq[*ChildData]
	// Len returns the number of nodes.
	Len() int
	// Clear removes all nodes.
	Clear()
}

// StandardStorage returns a storage in memory, with the behavior of the default. In Java:
// CuratorCacheStorage.standard.
func StandardStorage() Storage { return &standardStorage{make(map[string]*ChildData)} }

type standardStorage struct{ nodes map[string]*ChildData }

func (s *standardStorage) Put(node *ChildData) (old *ChildData) {
	old = s.nodes[node.Path]
	s.nodes[node.Path] = node
	return old
}

func (s *standardStorage) Remove(path string) (old *ChildData) {
	old = s.nodes[path]
	delete(s.nodes, path)
	return old
}

func (s *standardStorage) Get(path string) *ChildData { return s.nodes[path] }
func (s *standardStorage) All() iter.Seq[*ChildData]  { return maps.Values(s.nodes) }
func (s *standardStorage) Len() int                   { return len(s.nodes) }
func (s *standardStorage) Clear()                     { s.nodes = make(map[string]*ChildData) }

// nodeStorage is the default storage. It keeps each ChildData in the engine's node, so that one map is enough.
type nodeStorage struct {
	engine   *engine
	dataless bool
}

func (s *nodeStorage) Put(now *ChildData) (old *ChildData) {
	if s.dataless {
		now = &ChildData{Path: now.Path, Stat: now.Stat}
	}
	n := s.engine.nodes[now.Path]
	old, n.kept = n.kept, now
	return old
}

func (s *nodeStorage) Remove(path string) (old *ChildData) {
	n := s.engine.nodes[path]
	old, n.kept = n.kept, nil
	return old
}

func (s *nodeStorage) Get(path string) *ChildData {
	if n := s.engine.nodes[path]; n != nil {
		return n.kept
	}
	return nil
}

func (s *nodeStorage) All() iter.Seq[*ChildData] {
	return func(yield func(*ChildData) bool) {
		for _, n := range s.engine.nodes {
			if n.kept != nil && !yield(n.kept) {
				return
			}
		}
	}
}

func (s *nodeStorage) Len() int { return s.engine.entries }

func (s *nodeStorage) Clear() {
	for _, n := range s.engine.nodes {
		n.kept = nil
	}
}
