package cache_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// The session has 100,000 watches of others. What a cache does is not more for that: its allocations are counted, and
// its requests. The test is not parallel: it counts the allocations of the process.
func TestCacheIgnoresWatchesElsewhere(t *testing.T) {
	if testenv.Real() {
		t.Skip("the allocations of the server are counted, too")
	}
	withScene(t, false, func(s *scene) {
		const watches, few = 20_000, 2_000
		s.set(root+"=1", root+"/a=1")
		s.client = s.newClient(s.place, framework.WithMaxPending(watches))
		s.watchElsewhere(watches)
		reconnect := func() {
			s.cutOff()()
			_, err := s.client.CheckExists().ForPath(s.ctx, root) // behind the watches that the session sets again
			s.must(err)
		}
		reconnect() // the first time buffers grow
		alone := mallocs(reconnect)

		c := cache.NewCuratorCache(s.client, root)
		start := mallocs(func() {
			s.must(c.Start())
			s.must(c.Ready(s.ctx))
		})
		s.place.Faults().ResetTrace()
		again := mallocs(func() {
			reconnect()
			s.must(c.Sync(s.ctx))
		})
		if n := s.requests("addWatch", "multiRead"); n > 4 {
			s.Errorf("%d requests of the cache after a reconnect", n)
		}
		s.place.Faults().ResetTrace()
		stop := mallocs(func() {
			s.must(c.Close())
			testenv.Eventually(t, func() bool { return s.requests("removeWatches") > 0 }, "the removal of the watch")
		})
		if n := s.requests("removeWatches", "checkWatches"); n != 1 {
			s.Errorf("%d requests of Close", n)
		}
		t.Logf("allocations: reconnect without the cache %d, with it %d; start %d, close %d", alone, again, start, stop)
		if start > few || again > alone+few || stop > few {
			s.Errorf("allocations: reconnect without the cache %d, with it %d; start %d, close %d", alone, again, start, stop)
		}
	})
}

// watchElsewhere sets watches of nodes that are not there.
func (s *scene) watchElsewhere(n int) {
	s.Helper()
	answers := make(chan error, n)
	watch := s.client.CheckExists().UsingWatcher(callbacks.NewWatcher(func(context.Context, zk.Event) {})).
		InBackground(func(_ context.Context, ev callbacks.Event) { answers <- ev.Err })
	for i := range n {
		s.must(watch.ForPath(s.ctx, fmt.Sprintf("/elsewhere%d", i)))
	}
	for range n {
		s.must(<-answers)
	}
}

// requests counts those of some operations since the trace was reset.
func (s *scene) requests(ops ...string) (n int) {
	for _, entry := range s.place.Faults().Trace() {
		for _, op := range ops {
			if entry.Op == op && !entry.Reply {
				n++
			}
		}
	}
	return n
}

// mallocs counts the allocations of the process meanwhile.
func mallocs(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}
