package cache_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

func TestCacheReconnectJitterSpreadsReads(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		const caches, limit = 20, time.Second
		s.set(root + "=1")
		changed := make(chan time.Time, caches)
		for range caches {
			c := cache.NewCuratorCache(s.client, root, cache.WithReconnectJitter(limit))
			c.AddListener(cache.ForChanges(func(context.Context, *cache.ChildData, *cache.ChildData) {
				changed <- time.Now()
			}))
			s.must(c.Start())
			s.closing(c)
			s.must(c.Ready(s.ctx))
		}
		heal := s.cutOff()
		s.set(root + "=2")
		heal()
		s.must(s.client.BlockUntilConnected(s.ctx))
		connected := time.Now()
		var first, last time.Time
		for range caches {
			at := <-changed
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		// In real time the reads come together whenever a server, or this process, is late.
		if spread := last.Sub(first); !testenv.Real() && spread < limit/5 {
			t.Errorf("the caches read within %v", spread)
		}
		if d := last.Sub(connected); d > 5*limit {
			t.Errorf("the last one read after %v", d)
		}
	})
}

// The servers are back for a moment, and then for good.
func TestCacheReconnectJitterStartsAnewWithEachConnection(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		const caches, limit = 10, 5 * time.Second
		s.set(root + "=1")
		for range caches {
			s.start(cache.WithReconnectJitter(limit))
		}
		s.cutOff()()
		heal := s.cutOff()
		pause(s.ctx, limit)
		s.place.Faults().ResetTrace()
		heal()
		pause(s.ctx, time.Millisecond)
		reads := 0
		for _, entry := range s.place.Faults().Trace() {
			if !entry.Reply && entry.Op == "multiRead" {
				reads++
			}
		}
		if reads == caches {
			t.Error("all caches read at once")
		}
	})
}
