package cache_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/gocurator/curator/codec"
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
		c.AddListener(func(_ context.Context, ev cache.Event) {
			if hasOld := ev.Type == cache.NodeChanged || ev.Type == cache.NodeDeleted; hasOld != (ev.Old != nil) {
				t.Errorf("%v of %s from %+v", ev.Type, ev.Path(), ev.Old)
			}
			got <- fmt.Sprint(ev.Type, " ", ev.Path())
		})
		cache.NewTyped(c, codec.JSON[int]{})
		s.must(c.Start())
		s.Cleanup(func() { s.must(c.Close()) })
		s.must(c.Ready(s.ctx))
		s.cutOff()()
		s.must(c.Sync(s.ctx))
		s.set(root + "/small=2")
		s.must(c.Sync(s.ctx))
		s.remove(root + "/small")
		for _, want := range []string{"NODE_CHANGED", "NODE_DELETED"} {
			for ev := ""; ev != want+" "+root+"/small"; {
				select {
				case ev = <-got:
				case <-s.ctx.Done():
					s.Fatal("no " + want)
				}
			}
		}
	})
}
