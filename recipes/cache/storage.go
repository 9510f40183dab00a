package cache

import (
	"iter"
	"maps"

	"github.com/go-zookeeper/zk"
)

// ChildData is a node as the cache has it. It does not change; neither may its Data be changed. In Java: ChildData.
type ChildData struct {
	Path string
	Stat zk.Stat
	Data []byte
}

// Storage is where a cache keeps its nodes. The cache calls one method that changes it at a time, and none meanwhile
// that reads; the methods must not call the cache. In Java: CuratorCacheStorage.
type Storage interface {
	// Put puts a node in, and returns what was at its path, nil if nothing was.
	Put(node *ChildData) (old *ChildData)
	// Remove removes a node and returns it, nil if it was not there.
	Remove(path string) (old *ChildData)
	// Get returns a node, nil if it is not there.
	Get(path string) *ChildData
	// All yields the nodes in any order.
	All() iter.Seq[*ChildData]
	Len() int
	Clear()
}

// StandardStorage returns a storage in memory: the default. In Java: CuratorCacheStorage.standard.
func StandardStorage() Storage { return make(standardStorage) }

type standardStorage map[string]*ChildData

func (s standardStorage) Put(node *ChildData) (old *ChildData) {
	old = s[node.Path]
	s[node.Path] = node
	return old
}

func (s standardStorage) Remove(path string) (old *ChildData) {
	old = s[path]
	delete(s, path)
	return old
}

func (s standardStorage) Get(path string) *ChildData { return s[path] }
func (s standardStorage) All() iter.Seq[*ChildData]  { return maps.Values(s) }
func (s standardStorage) Len() int                   { return len(s) }
func (s standardStorage) Clear()                     { clear(s) }

// DataNotCachedStorage returns a storage in memory that has the nodes without their data. In Java:
// CuratorCacheStorage.dataNotCached.
func DataNotCachedStorage() Storage { return dataless{make(standardStorage)} }

type dataless struct{ standardStorage }

func (s dataless) Put(node *ChildData) (old *ChildData) {
	return s.standardStorage.Put(withoutData(node))
}

func withoutData(node *ChildData) *ChildData { return &ChildData{Path: node.Path, Stat: node.Stat} }

// nodeStorage keeps the nodes with what the engine has of them, so that there is one map: the default.
type nodeStorage struct {
	nodes    map[string]*node // of the engine
	count    int
	dataless bool
}

func (s *nodeStorage) Put(now *ChildData) (old *ChildData) {
	if s.dataless {
		now = withoutData(now)
	}
	return s.set(s.nodes[now.Path], now)
}

func (s *nodeStorage) Remove(path string) (old *ChildData) { return s.set(s.nodes[path], nil) }

func (s *nodeStorage) set(n *node, now *ChildData) (old *ChildData) {
	old, n.kept = n.kept, now
	if old != nil {
		s.count--
	}
	if now != nil {
		s.count++
	}
	return old
}

func (s *nodeStorage) Get(path string) *ChildData {
	if n := s.nodes[path]; n != nil {
		return n.kept
	}
	return nil
}

func (s *nodeStorage) All() iter.Seq[*ChildData] {
	return func(yield func(*ChildData) bool) {
		for _, n := range s.nodes {
			if n.kept != nil && !yield(n.kept) {
				return
			}
		}
	}
}

func (s *nodeStorage) Len() int { return s.count }

func (s *nodeStorage) Clear() {
	for _, n := range s.nodes {
		n.kept = nil
	}
	s.count = 0
}
