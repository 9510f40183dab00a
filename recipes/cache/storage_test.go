package cache_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/gocurator/curator/recipes/cache"
)

// forgetful is a storage that keeps nothing.
type forgetful struct{}

func (forgetful) Put(*cache.ChildData) *cache.ChildData { return nil }
func (forgetful) Remove(string) *cache.ChildData        { return nil }
func (forgetful) Get(string) *cache.ChildData           { return nil }
func (forgetful) All() iter.Seq[*cache.ChildData]       { return func(func(*cache.ChildData) bool) {} }
func (forgetful) Len() int                              { return 0 }
func (forgetful) Clear()                                {}

func TestCacheWithAStorageThatForgets(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root, root+"/large="+strings.Repeat("x", 10<<10), root+"/small")
		c := cache.NewCuratorCache(s.client, root, cache.WithStorage(forgetful{}))
		got := make(chan string, 100)
		c.Listenable().AddListener(func(_ context.Context, ev cache.Event) {
			got <- fmt.Sprint(ev.Type, " ", ev.Path())
		})
		cache.NewTyped(c, cache.JSON[int])
		s.must(c.Start())
		s.Cleanup(func() { s.must(c.Close()) })
		s.must(c.Ready(s.ctx))
		s.cutOff()()
		s.must(c.Sync(s.ctx))
		s.remove(root + "/small")
		for {
			select {
			case ev := <-got:
				if ev == "NODE_DELETED "+root+"/small" {
					return
				}
			case <-s.ctx.Done():
				s.Fatal("no event of the deletion")
			}
		}
	})
}
