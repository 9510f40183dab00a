package cache_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// Servers before 3.9 keep one mode of a watch for each node of a session.
func TestCachesOfDifferentDepthsShareANode(t *testing.T) {
	t.Parallel()
	for _, nodeFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("node cache first %t", nodeFirst), func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.set(root, root+"/a")
				node := cache.NewNodeCache(s.client, root)
				s.Cleanup(func() { s.must(node.Close()) })
				children := cache.NewPathChildrenCache(s.client, root)
				s.Cleanup(func() { s.must(children.Close()) })
				var whole *watched
				if nodeFirst {
					s.must(node.StartAndBuild(s.ctx))
				}
				whole = s.start()
				s.must(children.Start(s.ctx, cache.BuildInitialCache))
				if !nodeFirst {
					s.must(node.StartAndBuild(s.ctx))
				}
				s.set(root+"/a/b=1", root+"/a=2", root+"=3")
				whole.await("NODE_CHANGED " + root + "=3")
				testenv.Eventually(s, func() bool { return string(node.CurrentData().Data) == "3" }, "the node cache follows")
				testenv.Eventually(s, func() bool {
					return string(children.CurrentDataOf(root+"/a").Data) == "2"
				}, "the children cache follows")
				heal := s.cutOff()
				heal()
				s.set(root+"/a/b=4", root+"=5")
				whole.await("NODE_CHANGED " + root + "=5")
				testenv.Eventually(s, func() bool { return string(node.CurrentData().Data) == "5" }, "the node cache follows")
				s.must(node.Close())
				s.must(children.Close())
				s.set(root+"/a/b=6", root+"/a/c=6", root+"=7")
				whole.await("NODE_CHANGED " + root + "=7")
				if n, _ := whole.Get(root + "/a/b"); string(n.Data) != "6" {
					s.Errorf("%s", n.Data)
				}
			})
		})
	}
}

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

func TestCacheReadsManyUnreadableNodesTogether(t *testing.T) {
	t.Parallel()
	const n = 300
	withScene(t, false, func(s *scene) {
		s.set(root)
		for i := range n {
			s.set(fmt.Sprintf("%s/node-%d", root, i))
		}
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"getData", "multiRead"}, Path: "/**" + root + "/*", Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		c := s.newCache()
		s.begin(c)
		s.must(c.Ready(s.ctx))
		time.Sleep(time.Second)
		s.place.Faults().ResetTrace()
		time.Sleep(10 * time.Minute)
		reads := map[string]int{}
		for _, e := range s.place.Faults().Trace() {
			if !e.Reply {
				reads[e.Op]++
			}
		}
		s.Logf("%v", reads)
	})
}
