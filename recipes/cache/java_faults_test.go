package cache_test

import (
	"context"
	"testing"

	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/recipes/cache"
)

// GH-1292: in Java each PersistentWatcher, and so each CuratorCache, leaves its listener with the client.
func TestGH1292PersistentWatcherLeavesNoListener(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		client := s.client
		before := hook.StateListeners(client)
		starts := map[string]func() error{
			"PersistentWatcher": func() error {
				w := cache.NewPersistentWatcher(client, root, true)
				reset := make(chan struct{}, 1)
				w.AddResetListener(func(context.Context, struct{}) { reset <- struct{}{} })
				s.must(w.Start())
				<-reset
				if n := hook.StateListeners(client) - before; n != 1 {
					t.Errorf("%d listeners of a watcher", n)
				}
				return w.Close()
			},
			"CuratorCache": func() error {
				c := cache.NewCuratorCache(client, root)
				s.must(c.Start())
				s.must(c.Ready(s.ctx))
				return c.Close()
			},
			"NodeCache": func() error {
				c := cache.NewNodeCache(client, root)
				s.must(c.StartAndBuild(s.ctx))
				return c.Close()
			},
		}
		for name, run := range starts {
			for range 20 {
				s.must(run())
			}
			if left := hook.StateListeners(client) - before; left != 0 {
				t.Errorf("%s has left %d listeners", name, left)
			}
		}
	})
}
