package cache_test

import (
	"testing"

	"github.com/gocurator/curator/recipes/cache"
)

func TestCacheHasNoChildrenAfterClose(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		w := s.start()
		s.must(w.Close())
		if children := w.Children(root); children != nil {
			s.Errorf("got %v", children)
		}
	})
}

// A caller uses the children without a test for nil.
func TestCacheChildrenLeaveOutWhatTheStorageDropped(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1", root+"/b=1")
		storage := cache.StandardStorage()
		w := s.start(cache.WithStorage(dropping{storage}))
		children := w.Children(root)
		if len(children) != 1 || children["b"] == nil {
			s.Errorf("got %v", children)
		}
	})
}

// dropping keeps no node named a.
type dropping struct{ cache.Storage }

func (d dropping) Put(n *cache.ChildData) *cache.ChildData {
	if n.Path == root+"/a" {
		return nil
	}
	return d.Storage.Put(n)
}
