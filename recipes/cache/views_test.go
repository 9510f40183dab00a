package cache_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

// queueOf returns what takes the texts of events from listeners.
func queueOf[E any](
	s *scene, add func(callbacks.Listener[E]) (remove func()), text func(E) string,
) (want func(events ...string)) {
	s.Helper()
	events := make(chan string, 1000)
	add(func(_ context.Context, ev E) { events <- text(ev) })
	return func(want ...string) {
		s.Helper()
		got := []string{}
		for len(got) < len(want) {
			select {
			case ev := <-events:
				got = append(got, ev)
			case <-s.ctx.Done():
				s.Fatalf("got %q, want %q", got, want)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

func nodeText(n *cache.ChildData) string {
	if n == nil {
		return ""
	}
	return " " + n.Path + "=" + string(n.Data)
}

func (s *scene) closing(c interface{ Close() error }) {
	s.Cleanup(func() { s.must(c.Close()) })
}

// In Java: TestNodeCache.testBasics, testDeleteThenCreate.
func TestNodeCacheFollowsItsNode(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := cache.NewNodeCache(s.client, root)
		want := queueOf(s, c.AddListener, func(n *cache.ChildData) string { return "node" + nodeText(n) })
		s.must(c.StartAndBuild(s.ctx))
		s.closing(c)
		if c.CurrentData() != nil || c.Path() != root {
			t.Errorf("got %+v", c.CurrentData())
		}
		s.set(root + "=1")
		want("node /config=1")
		s.set(root+"/child=1", root+"=2")
		want("node /config=2")
		s.remove(root)
		want("node")
		s.set(root + "=3")
		want("node /config=3")
		if data := c.CurrentData(); data == nil || string(data.Data) != "3" {
			t.Errorf("got %+v", data)
		}
		s.must(c.Rebuild(s.ctx))
		if err := c.Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestNodeCacheTellsNothingOfWhatItIsBuiltOf(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + "=1")
		c := cache.NewNodeCache(s.client, root)
		want := queueOf(s, c.AddListener, func(n *cache.ChildData) string { return "node" + nodeText(n) })
		s.must(c.StartAndBuild(s.ctx))
		s.closing(c)
		if data := c.CurrentData(); data == nil || string(data.Data) != "1" {
			t.Errorf("got %+v", data)
		}
		s.set(root + "=2")
		want("node /config=2")
	})
}

func childText(ev cache.PathChildrenCacheEvent) string { return ev.Type.String() + nodeText(ev.Data) }

// In Java: TestPathChildrenCache.testPostInitialized, testBasics, testChildrenInitialized, testKilledSession.
func TestPathChildrenCacheStartModes(t *testing.T) {
	t.Parallel()
	tests := map[cache.StartMode][]string{
		cache.Normal:               {"CHILD_ADDED /config/a=1", "CHILD_UPDATED /config/a=2"},
		cache.BuildInitialCache:    {"CHILD_UPDATED /config/a=2"},
		cache.PostInitializedEvent: {"CHILD_ADDED /config/a=1", "INITIALIZED", "CHILD_UPDATED /config/a=2"},
	}
	for mode, events := range tests {
		inScene(t, func(s *scene) {
			s.set(root+"=1", root+"/a=1", root+"/a/below=1")
			c := cache.NewPathChildrenCache(s.client, root)
			events := events
			want := queueOf(s, c.AddListener, childText)
			s.must(c.Start(s.ctx, mode))
			s.closing(c)
			if mode != cache.BuildInitialCache {
				want(events[:len(events)-1]...)
				events = events[len(events)-1:]
			} else if data := c.CurrentData(); len(data) != 1 || data[0].Path != root+"/a" {
				t.Errorf("got %+v", data)
			}
			s.set(root+"/a=2", root+"=2", root+"/a/below=2")
			want(events...)
			s.set(root + "/b=1")
			want("CHILD_ADDED /config/b=1")
			s.remove(root + "/a")
			want("CHILD_REMOVED /config/a=2")
			if c.CurrentDataOf(root) != nil || c.CurrentDataOf(root+"/b") == nil {
				t.Error("the node is no child of its own")
			}
			s.must(c.Rebuild(s.ctx))
			s.must(c.RebuildNode(s.ctx, root+"/b"))
			if err := c.RebuildNode(s.ctx, "/other"); err == nil {
				t.Error("rebuilds a node of somebody else")
			}
			s.must(c.ClearAndRefresh())
			want("CHILD_ADDED /config/b=1")
		})
	}
}

func TestPathChildrenCacheStartRefusesUnknownMode(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		c := cache.NewPathChildrenCache(s.client, root)
		s.closing(c)
		for _, mode := range []cache.StartMode{cache.Normal - 1, cache.PostInitializedEvent + 1} {
			if err := c.Start(s.ctx, mode); !errors.Is(err, framework.ErrBadArguments) {
				s.Errorf("mode %d: %v", mode, err)
			}
		}
		s.must(c.Start(s.ctx, cache.Normal)) // a refused start is none
	})
}

func TestPathChildrenCacheRebuildNodeRefusesInvalidPath(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		c := cache.NewPathChildrenCache(s.client, root)
		s.must(c.Start(s.ctx, cache.BuildInitialCache))
		s.closing(c)
		if err := c.RebuildNode(s.ctx, root+"/"); err == nil {
			s.Error("no error")
		}
		s.must(c.Rebuild(s.ctx))
		if err := c.Err(root + "/a"); err != nil {
			s.Errorf("error of another node: %v", err)
		}
	})
}

// In Java: rebuildNode throws IllegalArgumentException.
func TestPathChildrenCacheRebuildNodeRefusesWhatIsNoChild(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1", root+"/a/below=1")
		c := cache.NewPathChildrenCache(s.client, root)
		s.must(c.Start(s.ctx, cache.BuildInitialCache))
		s.closing(c)
		for _, path := range []string{root, root + "/a/below"} {
			if err := c.RebuildNode(s.ctx, path); err == nil {
				s.Errorf("no error for %s", path)
			}
		}
	})
}

func TestPathChildrenCacheTellsOfTheConnection(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		c := cache.NewPathChildrenCache(s.client, root)
		want := queueOf(s, c.AddListener, childText)
		s.must(c.Start(s.ctx, cache.Normal))
		s.closing(c)
		want("CHILD_ADDED /config/a=1")
		lost := s.awaitState(framework.Lost)
		restore := s.cutOff()
		want("CONNECTION_SUSPENDED")
		lost()
		want("CONNECTION_LOST")
		s.remove(root + "/a")
		restore()
		want("CONNECTION_RECONNECTED", "CHILD_REMOVED /config/a=1")
	})
}

func treeText(ev cache.TreeCacheEvent) string { return ev.Type.String() + nodeText(ev.Data) }

// In Java: TestTreeCache.testStartupThenWatch, testUpdate, testDeleteNodeAfterCloseDoesntCallExecutor,
// testKilledSession.
func TestTreeCacheEvents(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		c := cache.NewTreeCache(s.client, root)
		want := queueOf(s, c.AddListener, treeText)
		s.must(c.Start())
		s.closing(c)
		want("NODE_ADDED /config=1", "NODE_ADDED /config/a=1", "INITIALIZED")
		s.set(root + "/a=2")
		want("NODE_UPDATED /config/a=2")
		if n := len(c.CurrentChildren(root)); n != 1 || c.Size() != 2 || c.CurrentData(root+"/a") == nil {
			t.Errorf("%d children, size %d", n, c.Size())
		}
		s.remove(root + "/a")
		want("NODE_REMOVED /config/a=2")
		if children := c.CurrentChildren(root); children == nil || len(children) != 0 { // Java's iterator fails here
			t.Errorf("children %v", children)
		}
		restore := s.cutOff()
		want("CONNECTION_SUSPENDED")
		restore()
		want("CONNECTION_RECONNECTED")
		lost := s.awaitState(framework.Lost)
		restore = s.cutOff()
		lost()
		want("CONNECTION_SUSPENDED", "CONNECTION_LOST")
		restore()
		want("CONNECTION_RECONNECTED", "INITIALIZED")
		if err := c.Err(root); err != nil {
			t.Error(err)
		}
	})
}

func eventText(ev zk.Event) string { return ev.Type.String() + " " + ev.Path }

// In Java: TestPersistentWatcher.testConnectionLost, testConnectionLostRecursive.
func TestPersistentWatcherSetsItsWatchAgain(t *testing.T) {
	t.Parallel()
	for _, recursive := range []bool{false, true} {
		withScene(t, false, func(s *scene) {
			w := cache.NewPersistentWatcher(s.client, root, recursive)
			want := queueOf(s, w.AddListener, eventText)
			reset := queueOf(s, w.AddResetListener, func(struct{}) string { return "reset" })
			s.must(w.Start())
			if err := w.Start(); !errors.Is(err, cache.ErrStarted) {
				t.Errorf("second Start: %v", err)
			}
			s.closing(w)
			reset("reset")
			s.set(root + "=1")
			want("EventNodeCreated /config")
			lost := s.awaitState(framework.Lost)
			restore := s.cutOff()
			lost()
			restore()
			reset("reset")
			s.set(root + "=2")
			want("EventNodeDataChanged /config")
			if recursive {
				s.set(root + "/a=1")
				want("EventNodeCreated /config/a")
			}
			s.must(w.Close())
			s.must(w.Close())
			if err := w.Start(); !errors.Is(err, cache.ErrClosed) {
				t.Errorf("Start after Close: %v", err)
			}
		})
	}
}

// Java adds the watch again at once, for ever.
func TestPersistentWatcherPausesOnErrors(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		refusals := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented, Count: 5,
		})
		unhandled := 0
		s.client.AddUnhandledErrorListener(func(context.Context, framework.UnhandledError) { unhandled++ })
		w := cache.NewPersistentWatcher(s.client, root, true)
		reset := queueOf(s, w.AddResetListener, func(struct{}) string { return "reset" })
		s.must(w.Start())
		s.closing(w)
		reset("reset")
		if n := refusals.Hits(); n != 5 || unhandled != n {
			t.Errorf("%d refusals, %d are reported", n, unhandled)
		}
	})
}

type setting struct{ Rate int }

type countingCodec struct {
	codec.JSON[setting]
	decoded int
}

func (c *countingCodec) Decode(data []byte) (setting, error) {
	c.decoded++
	return c.JSON.Decode(data)
}

func TestTypedDecodesAStateOnce(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root + `={"Rate":1}`)
		w, values := s.newCache(), &countingCodec{}
		typed := cache.NewTyped(w.CuratorCache, values)
		s.begin(w)
		s.must(w.Ready(s.ctx))
		for range 2 {
			if v, ok := typed.Get(root); !ok || v.Rate != 1 || values.decoded != 1 {
				t.Errorf("got %+v, %t, decoded %d times", v, ok, values.decoded)
			}
			s.must(w.Rebuild(s.ctx)) // reads it again
		}
		s.set(root + `={"Rate":2}`)
		s.must(w.Sync(s.ctx))
		if v, ok := typed.Get(root); !ok || v.Rate != 2 || values.decoded != 2 {
			t.Errorf("got %+v, %t, decoded %d times", v, ok, values.decoded)
		}
	})
}

func TestTypedKeepsDecodeErrorsWithTheirNodes(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+`={"Rate":1}`, root+`/a={"Rate":2}`, root+"/bad=no JSON")
		w := s.newCache()
		typed := cache.NewTyped(w.CuratorCache, codec.JSON[setting]{})
		s.begin(w)
		s.must(w.Ready(s.ctx))
		if v, ok := typed.Get(root + "/a"); !ok || v.Rate != 2 {
			t.Errorf("got %+v, %t", v, ok)
		}
		if _, ok := typed.Get(root + "/bad"); ok || typed.Err(root+"/bad") == nil || typed.Err(root) != nil {
			t.Errorf("error %v", typed.Err(root+"/bad"))
		}
		n := 0
		for _, v := range typed.All() {
			n += v.Rate
		}
		if n != 3 {
			t.Errorf("the sum is %d", n)
		}
		s.set(root + `/bad={"Rate":3}`)
		s.must(w.Sync(s.ctx))
		if v, ok := typed.Get(root + "/bad"); !ok || v.Rate != 3 || typed.Err(root+"/bad") != nil {
			t.Errorf("got %+v, %v", v, typed.Err(root+"/bad"))
		}
		for ev := range typed.Changes(s.ctx) {
			if ev.Type == cache.Initialized {
				s.set(root + `/a={"Rate":4}`)
			}
			if ev.Type == cache.NodeChanged {
				if ev.Value.Rate != 4 || ev.Err != nil {
					t.Errorf("got %+v, %v", ev.Value, ev.Err)
				}
				break
			}
		}
		if _, ok := typed.Get("/none"); ok || typed.Err("/none") != nil {
			t.Error("there is a value of a node that is not there")
		}
	})
}
