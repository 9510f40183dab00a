package cache_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

func TestCacheLoadsTheTreeParentsFirst(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set("/other=no", root+"=r", root+"/a=1", root+"/a/b=2", root+"/a/b/c=3", root+"/d")
		w := s.start()
		w.equalsTree()
		node, ok := w.Get(root + "/a/b")
		if !ok || string(node.Data) != "2" || node.Stat.NumChildren != 1 {
			s.Errorf("got %+v, %t", node, ok)
		}
		if _, ok := w.Get("/other"); ok || w.Size() != 5 {
			s.Errorf("size %d", w.Size())
		}
		if children := w.Children(root); len(children) != 2 || string(children["a"].Data) != "1" {
			s.Errorf("children %v", children)
		}
		if children := w.Children(root + "/none"); children != nil {
			s.Errorf("children %v of none", children)
		}
	})
}

func TestCacheFollowsChanges(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		w := s.start()
		s.set(root + "=1")
		w.wantEvents("NODE_CREATED /config=1")
		s.set(root + "=2")
		w.wantEvents("NODE_CHANGED /config=2")
		s.set(root + "/a=1")
		w.wantEvents("NODE_CREATED /config/a=1")
		s.set(root + "/a/b=1")
		w.wantEvents("NODE_CREATED /config/a/b=1")
		s.set(root + "/a/b=2")
		w.wantEvents("NODE_CHANGED /config/a/b=2")
		s.remove(root + "/a/b")
		w.wantEvents("NODE_DELETED /config/a/b")
		s.set(root + "/a/b=3")
		w.wantEvents("NODE_CREATED /config/a/b=3")
		s.remove(root)
		w.wantEvents("NODE_DELETED /config/a/b", "NODE_DELETED /config/a", "NODE_DELETED /config")
		s.set(root + "/a=4")
		w.wantEvents("NODE_CREATED /config", "NODE_CREATED /config/a=4")
		w.equalsTree()
	})
}

func TestCacheOfAMissingNodeIsReadyAndEmpty(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		w := s.start()
		if w.Size() != 0 || w.Err(root) != nil {
			s.Errorf("size %d, error %v", w.Size(), w.Err(root))
		}
	})
}

func TestCacheOfASingleNode(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		w := s.start(cache.WithSingleNode())
		s.set(root+"/a=2", root+"/b", root+"=2")
		w.wantEvents("NODE_CHANGED /config=2")
		s.remove(root)
		w.wantEvents("NODE_DELETED /config")
		s.set(root + "=3")
		w.wantEvents("NODE_CREATED /config=3")
	})
}

type odd struct{}

func (odd) TraverseChildren(path string) bool { return path != root+"/leaf" }
func (odd) AcceptChild(path string) bool      { return path != root+"/hidden" }

func TestCacheHasWhatDepthAndSelectorSay(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"/a/b/c=1", root+"/leaf/x=1", root+"/hidden/y=1")
		w := s.start(cache.WithMaxDepth(2), cache.WithSelector(odd{}))
		want := []string{root + "/a/b=", root + "/a=", root + "/leaf=", root + "="}
		if diff := cmp.Diff(want, w.content()); diff != "" {
			s.Error(diff)
		}
		s.set(root+"/a/b/c=2", root+"/a/b/d=2", root+"/leaf/x=2", root+"/hidden/y=2", root+"/hidden=2", root+"/a/b=2")
		w.wantEvents("NODE_CHANGED /config/a/b=2")
	})
}

func TestCacheWithoutDataHasItInEvents(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + "=1")
		w := s.start(cache.WithDataNotCached())
		s.set(root + "=2")
		w.wantEvents("NODE_CHANGED /config=2")
		if node, ok := w.Get(root); !ok || node.Data != nil || node.Stat.DataLength != 1 {
			s.Errorf("got %+v, %t", node, ok)
		}
		for ev := range w.Changes(s.ctx) {
			if ev.Type != cache.NodeCreated || ev.New.Path != root || ev.New.Data != nil {
				s.Errorf("changes begin with %v, %+v", ev.Type, ev.New)
			}
			break
		}
	})
}

func TestCacheClearsOnCloseUnlessKept(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + "=1")
		for want, opts := range [][]cache.Option{{}, {cache.WithoutClearOnClose()}} {
			w := s.start(opts...)
			w.must(w.Close())
			w.must(w.Close())
			if w.Size() != want {
				s.Errorf("size %d after Close, want %d", w.Size(), want)
			}
			if err := w.Start(); !errors.Is(err, cache.ErrClosed) {
				s.Errorf("Start after Close: %v", err)
			}
			if err := w.Ready(s.ctx); !errors.Is(err, cache.ErrClosed) {
				s.Errorf("Ready after Close: %v", err)
			}
			if err := w.Sync(s.ctx); !errors.Is(err, cache.ErrClosed) {
				s.Errorf("Sync after Close: %v", err)
			}
		}
	})
}

func TestCacheStartEmptiesItsStorage(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		storage := cache.StandardStorage()
		s.must(s.start(cache.WithStorage(storage), cache.WithoutClearOnClose()).Close())
		s.remove(root + "/a")
		w := s.start(cache.WithStorage(storage))
		w.equalsTree()
	})
}

func TestCacheLife(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := cache.NewCuratorCache(s.client, root)
		if err := c.Ready(s.ctx); !errors.Is(err, cache.ErrNotStarted) {
			s.Errorf("Ready before Start: %v", err)
		}
		s.must(c.Start())
		if err := c.Start(); !errors.Is(err, cache.ErrStarted) {
			s.Errorf("second Start: %v", err)
		}
		s.must(c.Close()) // whatever is under way
		s.must(cache.NewCuratorCache(s.client, root).Close())
		if err := cache.NewCuratorCache(s.client, "no path").Start(); err == nil {
			s.Error("a path that cannot be is accepted")
		}
		ended, cancel := context.WithCancel(s.ctx)
		cancel()
		w := s.start()
		if err := w.Sync(ended); !errors.Is(err, context.Canceled) {
			s.Errorf("Sync: %v", err)
		}
	})
}

func TestCacheListeners(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + "=1")
		w := s.newCache()
		var got []string
		note := func(what string) { got = append(got, what) }
		data := func(n *cache.ChildData) string {
			if n == nil {
				return "nil"
			}
			return string(n.Data)
		}
		for _, l := range []cache.Listener{
			cache.ForAll(func(_ context.Context, ev cache.Event) { note("all " + ev.Type.String()) }),
			cache.ForCreates(func(_ context.Context, n *cache.ChildData) { note("create " + data(n)) }),
			cache.ForChanges(func(_ context.Context, old, n *cache.ChildData) { note("change " + data(old) + " " + data(n)) }),
			cache.ForCreatesAndChanges(func(_ context.Context, old, n *cache.ChildData) {
				note("either " + data(old) + " " + data(n))
			}),
			cache.ForDeletes(func(_ context.Context, n *cache.ChildData) { note("delete " + data(n)) }),
			cache.ForInitialized(func(context.Context) { note("initialized") }),
			cache.ForNodeCache(func(context.Context) { note("node") }),
			cache.AfterInitialized(func(_ context.Context, ev cache.Event) { note("after " + ev.Type.String()) }),
			cache.ForTreeCache(func(_ context.Context, ev cache.TreeCacheEvent) { note("tree " + ev.Type.String()) }),
			cache.ForPathChildrenCache("/", func(_ context.Context, ev cache.PathChildrenCacheEvent) {
				note("child " + ev.Type.String())
			}),
		} {
			w.AddListener(l)
		}
		s.begin(w)
		s.must(w.Ready(s.ctx))
		s.set(root + "=2")
		s.must(w.Sync(s.ctx))
		done := make(chan struct{})
		w.AddListener(cache.ForDeletes(func(context.Context, *cache.ChildData) { close(done) }))
		s.remove(root)
		s.must(w.Sync(s.ctx))
		<-done
		want := []string{
			"all NODE_CREATED", "create 1", "either nil 1", "node", "tree NODE_ADDED", "child CHILD_ADDED",
			"initialized", "after INITIALIZED", "tree INITIALIZED", "child INITIALIZED",
			"all NODE_CHANGED", "change 1 2", "either 1 2", "node", "after NODE_CHANGED", "tree NODE_UPDATED",
			"child CHILD_UPDATED",
			"all NODE_DELETED", "delete 2", "node", "after NODE_DELETED", "tree NODE_REMOVED", "child CHILD_REMOVED",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestCacheListenerMayPanicBlockAndClose(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		w := s.newCache()
		release := make(chan struct{})
		w.AddListener(func(context.Context, cache.Event) { panic("of the program") })
		w.AddListener(func(context.Context, cache.Event) { <-release })
		s.begin(w)
		s.must(w.Ready(s.ctx))
		s.set(root + "=2")
		s.must(w.Sync(s.ctx)) // while the listener blocks
		if node, _ := w.Get(root); string(node.Data) != "2" {
			s.Errorf("got %s", node.Data)
		}
		_, err := s.client.GetData().ForPath(s.ctx, root)
		s.must(err)
		close(release)
		w.await("NODE_CHANGED /config=2")

		late := s.newCache()
		closed := make(chan struct{})
		late.AddListener(func(context.Context, cache.Event) {
			s.must(late.Close())
			select {
			case <-closed:
				s.Error("called after Close")
			default:
				close(closed)
			}
		})
		s.must(late.Start())
		<-closed
	})
}

func TestCacheListenerThatEndsItsGoroutineKeepsNoEventFromOthers(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		c := cache.NewCuratorCache(s.client, root)
		c.AddListener(func(context.Context, cache.Event) { runtime.Goexit() })
		w := s.cacheOf(c)
		s.begin(w)
		s.must(w.Ready(s.ctx))
		w.await("INITIALIZED")
	})
}

func TestCacheListenerMayCallEveryMethod(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		c := cache.NewCuratorCache(s.client, root)
		done := make(chan struct{})
		c.AddListener(func(ctx context.Context, ev cache.Event) {
			if ev.Type != cache.Initialized {
				return
			}
			if err := c.Start(); !errors.Is(err, cache.ErrStarted) {
				t.Error(err)
			}
			s.must(c.Ready(ctx))
			s.must(c.Sync(ctx))
			for range c.Changes(ctx) {
				break
			}
			for range c.All() {
				c.Get(root)
			}
			var remove func()
			remove = c.AddListener(func(context.Context, cache.Event) { remove() })
			s.must(c.Close())
			if err := c.Sync(ctx); !errors.Is(err, cache.ErrClosed) {
				t.Error(err)
			}
			close(done)
		})
		s.must(c.Start())
		<-done
	})
}

func TestCacheChangesBeginWithASnapshot(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		w := s.newCache()
		s.begin(w)
		var got []string
		for ev := range w.Changes(s.ctx) {
			got = append(got, ev.Type.String()+" "+ev.Path())
			if ev.Type == cache.Initialized {
				s.set(root + "/b=1")
			}
			if ev.Path() == root+"/b" {
				s.remove(root + "/a")
			}
			if ev.Type == cache.NodeDeleted {
				break
			}
		}
		want := []string{
			"NODE_CREATED /config", "NODE_CREATED /config/a", "INITIALIZED ", "NODE_CREATED /config/b", "NODE_DELETED /config/a",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Error(diff)
		}
		for range w.Changes(s.ctx) {
			s.must(w.Close()) // ends it
		}
	})
}

func TestCacheKeepsTheErrorOfANodeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1", root+"/secret/below=1")
		_, err := s.writer.SetACL().WithACL(zk.DigestACL(zk.PermAll, "u", "p")...).ForPath(s.ctx, root+"/secret")
		s.must(err)
		w := s.start()
		if err := w.Err(root + "/secret"); !errors.Is(err, zk.ErrNoAuth) {
			s.Errorf("error %v", err)
		}
		if _, ok := w.Get(root + "/secret"); ok {
			s.Error("it is in the cache")
		}
		s.set(root + "/a=2")
		w.wantEvents("NODE_CHANGED /config/a=2")
		admin := s.newClient(s.place, framework.WithAuth("digest", []byte("u:p")))
		_, err = admin.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(s.ctx, root+"/secret")
		s.must(err)
		w.await("NODE_CREATED /config/secret/below=1")
		if err := w.Err(root + "/secret"); err != nil {
			s.Errorf("error %v", err)
		}
		w.equalsTree()
	})
}

func TestCacheChangesPassAfterInitialized(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root + "=1")
		w := s.start()
		var got []string
		listener := cache.AfterInitialized(func(_ context.Context, ev cache.Event) { got = append(got, ev.Type.String()) })
		for ev := range w.Changes(s.ctx) {
			listener(s.ctx, ev)
			if ev.Type == cache.Initialized {
				s.set(root + "=2")
			}
			if ev.Type == cache.NodeChanged {
				break
			}
		}
		if want := []string{"NODE_CREATED", "INITIALIZED", "NODE_CHANGED"}; !slices.Equal(got, want) {
			s.Errorf("got %v", got)
		}
	})
}

func TestCacheDecompresses(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		put := func(path string, data []byte) {
			_, err := s.writer.Create().CreatingParentsIfNeeded().Compressed().OrSetData().ForPath(s.ctx, path, data)
			s.must(err)
		}
		put(root, []byte("r"))
		put(root+"/a", []byte("1"))
		s.set(root + "/bad=plain")
		put(root+"/bad/below", []byte("2"))
		w := s.start(cache.WithCompressedData())
		if w.Err(root+"/bad") == nil {
			s.Error("no error of what does not decompress")
		}
		if node, ok := w.Get(root + "/a"); !ok || string(node.Data) != "1" {
			s.Errorf("got %+v", node)
		}
	})
}

func TestCacheOfANamespace(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set("/ns/config=1", "/other=1")
		w := s.cacheOf(cache.NewCuratorCache(s.client.UsingNamespace("ns"), "/"))
		s.begin(w)
		s.must(w.Ready(s.ctx))
		s.set("/ns/config/a=1")
		s.must(w.Sync(s.ctx))
		want := []string{"/=", "/config/a=1", "/config=1"}
		if diff := cmp.Diff(want, w.content()); diff != "" {
			s.Error(diff)
		}
	})
}

func TestCacheWhoseClientIsClosed(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + "=1")
		client := s.newClient(s.place)
		w := s.cacheOf(cache.NewCuratorCache(client, root))
		s.begin(w)
		s.must(w.Ready(s.ctx))
		s.must(client.Close())
		if node, ok := w.Get(root); !ok || string(node.Data) != "1" {
			t.Errorf("got %+v", node)
		}
		if err := w.Sync(s.ctx); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("Sync: %v", err)
		}
		s.must(w.Close())
		late := cache.NewCuratorCache(client, root)
		if err := late.Start(); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("Start: %v", err)
		}
		s.must(late.Close())
	})
}
