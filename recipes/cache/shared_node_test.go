package cache_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
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

// TestPersistentWatcherSharesANodeWithACache closes one of them, and changes what the other has to see.
func TestPersistentWatcherSharesANodeWithACache(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                       string
		watcherFirst, closeWatcher bool
	}{
		{"watcher first, cache closed", true, false},
		{"watcher first, watcher closed", true, true},
		{"cache first, cache closed", false, false},
		{"cache first, watcher closed", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			withScene(t, false, func(s *scene) {
				s.set(root, root+"/a")
				w := cache.NewPersistentWatcher(s.client, root, false)
				s.Cleanup(func() { s.must(w.Close()) })
				events, set := make(chan zk.Event, 100), make(chan struct{}, 10)
				w.AddListener(func(_ context.Context, ev zk.Event) { events <- ev })
				w.AddResetListener(func(context.Context, struct{}) { set <- struct{}{} })
				await := func(typ zk.EventType) {
					s.Helper()
					for {
						select {
						case ev := <-events:
							if ev.Path != root {
								s.Errorf("event of %s", ev.Path)
							}
							if ev.Type == typ {
								return
							}
						case <-s.ctx.Done():
							s.Fatalf("no %v", typ)
						}
					}
				}
				watch := func() {
					s.must(w.Start())
					<-set
				}
				if tt.watcherFirst {
					watch()
				}
				c := s.start()
				if !tt.watcherFirst {
					watch()
				}
				for _, data := range []string{"1", "2"} {
					s.set(root+"/a="+data, root+"/new-"+data, root+"="+data)
					await(zk.EventNodeChildrenChanged)
					await(zk.EventNodeDataChanged)
					c.await("NODE_CHANGED " + root + "=" + data)
					if n, _ := c.Get(root + "/a"); string(n.Data) != data {
						s.Errorf("the cache has %q", n.Data)
					}
					if data == "1" {
						s.cutOff()()
						<-set
					}
				}
				if tt.closeWatcher {
					s.must(w.Close())
					s.set(root+"/a=3", root+"=3")
					c.await("NODE_CHANGED " + root + "=3")
					if n, _ := c.Get(root + "/a"); string(n.Data) != "3" {
						s.Errorf("the cache has %q", n.Data)
					}
				} else {
					s.must(c.Close())
					testclient.AwaitSilence(s, s.place.Faults())
					s.set(root + "/new-3")
					await(zk.EventNodeChildrenChanged)
				}
			})
		})
	}
}

func TestOneShotWatchOfChildrenSharesANodeWithACache(t *testing.T) {
	t.Parallel()
	for _, cacheFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("cache first %t", cacheFirst), func(t *testing.T) {
			t.Parallel()
			withScene(t, false, func(s *scene) {
				s.set(root)
				var c *watched
				if cacheFirst {
					c = s.start()
				}
				events := make(chan zk.Event, 10)
				_, err := s.client.GetChildren().UsingWatcher(callbacks.NewChanWatcher(events)).ForPath(s.ctx, root)
				s.must(err)
				if !cacheFirst {
					c = s.start()
				}
				s.set(root+"/a", root+"/b")
				c.await("NODE_CREATED " + root + "/b")
				select {
				case ev := <-events:
					if ev.Type != zk.EventNodeChildrenChanged || ev.Path != root {
						s.Errorf("event %+v", ev)
					}
				default:
					s.Error("no event")
				}
				if len(events) > 0 {
					s.Errorf("another event: %+v", <-events)
				}
			})
		})
	}
}
