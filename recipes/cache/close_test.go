package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

// closer is a cache whose first event calls a function.
type closer struct {
	start func() error
	close func() error
}

// closers has every kind of cache. Each calls fn once for each event.
func closers(s *scene) map[string]func(fn func()) closer {
	return map[string]func(fn func()) closer{
		"CuratorCache": func(fn func()) closer {
			c := cache.NewCuratorCache(s.client, root)
			c.Listenable().AddListener(func(context.Context, cache.Event) { fn() })
			return closer{c.Start, c.Close}
		},
		"NodeCache": func(fn func()) closer {
			c := cache.NewNodeCache(s.client, root)
			c.Listenable().AddListener(func(context.Context, *cache.ChildData) { fn() })
			return closer{c.Start, c.Close}
		},
		"PathChildrenCache": func(fn func()) closer {
			c := cache.NewPathChildrenCache(s.client, root)
			c.Listenable().AddListener(func(context.Context, cache.PathChildrenCacheEvent) { fn() })
			return closer{func() error { return c.Start(s.ctx, cache.Normal) }, c.Close}
		},
		"TreeCache": func(fn func()) closer {
			c := cache.NewTreeCache(s.client, root)
			c.Listenable().AddListener(func(context.Context, cache.TreeCacheEvent) { fn() })
			return closer{c.Start, c.Close}
		},
		"PersistentWatcher": func(fn func()) closer {
			c := cache.NewPersistentWatcher(s.client, root, true)
			c.Listenable().AddListener(func(context.Context, zk.Event) { fn() })
			c.ResetListenable().AddListener(func(context.Context, struct{}) { fn() })
			return closer{c.Start, c.Close}
		},
	}
}

func eachCloser(t *testing.T, test func(s *scene, newCloser func(fn func()) closer)) {
	t.Helper()
	for _, name := range []string{"CuratorCache", "NodeCache", "PathChildrenCache", "TreeCache", "PersistentWatcher"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withScene(t, false, func(s *scene) {
				s.set(root+"=1", root+"/a=1", root+"/b=1")
				test(s, closers(s)[name])
			})
		})
	}
}

func TestCloseWaitsForTheListenerThatRuns(t *testing.T) {
	t.Parallel()
	eachCloser(t, func(s *scene, newCloser func(fn func()) closer) {
		entered, release := make(chan struct{}, 100), make(chan struct{})
		var running, calls atomic.Int32
		c := newCloser(func() {
			running.Add(1)
			calls.Add(1)
			entered <- struct{}{}
			<-release
			running.Add(-1)
		})
		s.must(c.start())
		<-entered
		timer := time.AfterFunc(100*time.Millisecond, func() { close(release) })
		defer timer.Stop()
		s.must(c.close())
		if running.Load() != 0 {
			s.Error("Close returned while a listener ran")
		}
		s.set(root+"=2", root+"/a=2")
		pause(s.ctx, 20*time.Millisecond)
		if n := calls.Load(); n != 1 {
			s.Errorf("%d calls, want the one before Close", n)
		}
	})
}

func TestCloseWaitsNoLongerThanASecondForAListener(t *testing.T) {
	t.Parallel()
	eachCloser(t, func(s *scene, newCloser func(fn func()) closer) {
		entered, release := make(chan struct{}, 100), make(chan struct{})
		var calls atomic.Int32
		c := newCloser(func() {
			calls.Add(1)
			entered <- struct{}{}
			<-release
		})
		s.must(c.start())
		<-entered
		began := time.Now()
		s.must(c.close())
		if d := time.Since(began); d < time.Second {
			s.Errorf("Close returned after %v", d)
		}
		close(release)
		pause(s.ctx, 20*time.Millisecond)
		if n := calls.Load(); n != 1 {
			s.Errorf("%d calls, want the one before Close", n)
		}
	})
}

func TestCloseWithinAListenerDoesNotWait(t *testing.T) {
	t.Parallel()
	eachCloser(t, func(s *scene, newCloser func(fn func()) closer) {
		var c closer
		var calls atomic.Int32
		took := make(chan time.Duration, 100)
		c = newCloser(func() {
			calls.Add(1)
			began := time.Now()
			s.must(c.close())
			took <- time.Since(began)
		})
		s.must(c.start())
		if d := <-took; d >= time.Second {
			s.Errorf("Close took %v", d)
		}
		s.must(c.close()) // waits for the listener
		if n := calls.Load(); n != 1 {
			s.Errorf("%d calls, want one", n)
		}
	})
}

func TestCacheClosedDuringLoadLeavesNoWatch(t *testing.T) {
	t.Parallel()
	for _, action := range []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply} {
		for _, op := range []string{"addWatch", "multiRead", "getData", "getChildren2"} {
			t.Run(fmt.Sprint(action, " ", op), func(t *testing.T) {
				t.Parallel()
				withScene(t, strings.HasPrefix(op, "get"), func(s *scene) {
					s.set(root+"=1", root+"/a=1")
					hold := s.place.Faults().Add(curatortest.Rule{Ops: []string{op}, Action: action, Count: 1})
					w := s.newCache()
					s.begin(w)
					s.must(hold.Wait(s.ctx))
					s.must(w.Close())
					pause(s.ctx, time.Second)
					hold.Release()
					pause(s.ctx, time.Second)
					for _, path := range []string{root, root + "/a"} {
						if err := s.client.Watches().RemoveAll().ForPath(s.ctx, path); !errors.Is(err, framework.ErrNoWatcher) {
							s.Errorf("%s: %v", path, err)
						}
					}
				})
			})
		}
	}
}
