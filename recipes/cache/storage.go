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
	return s.standardStorage.Put(&ChildData{Path: node.Path, Stat: node.Stat})
}
