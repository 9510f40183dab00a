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
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// closer is a cache with two listeners, each of which calls a function.
type closer struct {
	start func() error
	close func() error
}

// closers has every kind of cache. Each calls fn twice for each event, so one listener is behind the other.
func closers(s *scene) map[string]func(fn func(ctx context.Context)) closer {
	return map[string]func(fn func(ctx context.Context)) closer{
		"CuratorCache": func(fn func(ctx context.Context)) closer {
			c := cache.NewCuratorCache(s.client, root)
			for range 2 {
				c.AddListener(func(ctx context.Context, _ cache.Event) { fn(ctx) })
			}
			return closer{c.Start, c.Close}
		},
		"NodeCache": func(fn func(ctx context.Context)) closer {
			c := cache.NewNodeCache(s.client, root)
			for range 2 {
				c.AddListener(func(ctx context.Context, _ *cache.ChildData) { fn(ctx) })
			}
			return closer{c.Start, c.Close}
		},
		"PathChildrenCache": func(fn func(ctx context.Context)) closer {
			c := cache.NewPathChildrenCache(s.client, root)
			for range 2 {
				c.AddListener(func(ctx context.Context, _ cache.PathChildrenCacheEvent) { fn(ctx) })
			}
			return closer{func() error { return c.Start(s.ctx, cache.Normal) }, c.Close}
		},
		"TreeCache": func(fn func(ctx context.Context)) closer {
			c := cache.NewTreeCache(s.client, root)
			for range 2 {
				c.AddListener(func(ctx context.Context, _ cache.TreeCacheEvent) { fn(ctx) })
			}
			return closer{c.Start, c.Close}
		},
		"PersistentWatcher": func(fn func(ctx context.Context)) closer {
			c := cache.NewPersistentWatcher(s.client, root, true)
			for range 2 {
				c.AddListener(func(ctx context.Context, _ zk.Event) { fn(ctx) })
			}
			c.AddResetListener(func(ctx context.Context, _ struct{}) { fn(ctx) })
			return closer{c.Start, c.Close}
		},
	}
}

func eachCloser(t *testing.T, test func(s *scene, newCloser func(fn func(ctx context.Context)) closer)) {
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

func TestCloseDoesNotWaitForListenerCallUnderWay(t *testing.T) {
	t.Parallel()
	eachCloser(t, func(s *scene, newCloser func(fn func(ctx context.Context)) closer) {
		entered, release := make(chan struct{}, 100), make(chan struct{})
		var calls atomic.Int32
		c := newCloser(func(context.Context) {
			calls.Add(1)
			entered <- struct{}{}
			<-release
		})
		s.must(c.start())
		<-entered
		began := time.Now()
		s.must(c.close())
		if d := time.Since(began); !testenv.Real() && d >= time.Second { // with a wait for the call it would not return
			s.Errorf("Close returned after %v", d)
		}
		s.set(root+"=2", root+"/a=2")
		close(release)
		pause(s.ctx, 20*time.Millisecond)
		if n := calls.Load(); n != 1 {
			s.Errorf("%d calls, want the one before Close", n)
		}
	})
}

func TestCloseEndsContextOfListenerCallUnderWay(t *testing.T) {
	t.Parallel()
	eachCloser(t, func(s *scene, newCloser func(fn func(ctx context.Context)) closer) {
		entered, ended := make(chan struct{}, 100), make(chan error, 100)
		c := newCloser(func(ctx context.Context) {
			entered <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
		})
		s.must(c.start())
		<-entered
		s.must(c.close())
		if err := <-ended; !errors.Is(err, cache.ErrClosed) {
			s.Errorf("the cause is %v", err)
		}
	})
}

func TestCloseWithinAListenerDoesNotWait(t *testing.T) {
	t.Parallel()
	eachCloser(t, func(s *scene, newCloser func(fn func(ctx context.Context)) closer) {
		var c closer
		var calls atomic.Int32
		took := make(chan time.Duration, 100)
		c = newCloser(func(context.Context) {
			calls.Add(1)
			began := time.Now()
			s.must(c.close())
			took <- time.Since(began)
		})
		s.must(c.start())
		if d := <-took; !testenv.Real() && d >= time.Second { // likewise
			s.Errorf("Close took %v", d)
		}
		s.must(c.close())
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
