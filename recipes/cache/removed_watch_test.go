package cache_test

import (
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// Another part of the program removes all watchers of paths of the cache.
func TestCacheGoesOnAfterItsWatchesAreRemoved(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(builders.RemoveWatches) builders.RemoveWatches{
		"removed": func(b builders.RemoveWatches) builders.RemoveWatches { return b },
		"locally": builders.RemoveWatches.Locally,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inScene(t, func(s *scene) {
				s.set(root+"=1", root+"/a=1", root+"/a/b=1")
				w := s.start()
				for round := 2; round < 5; round++ {
					for _, path := range []string{root, root + "/a", root + "/a/b"} {
						s.must(with(s.client.Watches().RemoveAll().Quietly()).ForPath(s.ctx, path))
					}
					value := "=" + string(rune('0'+round))
					s.set(root+"/a"+value, root+"/a/b"+value, root+"/a/c"+value)
					w.equalsTree()
				}
			})
		})
	}
}

// The watch of a missing root is that of an exists.
func TestCacheOfAMissingNodeGoesOnAfterItsWatchIsRemoved(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		w := s.start()
		s.must(s.client.Watches().RemoveAll().ForPath(s.ctx, root))
		s.set(root+"=1", root+"/a=1")
		w.await("NODE_CREATED /config/a=1")
		w.equalsTree()
	})
}

// The watch is removed while the client has no connection.
func TestCacheGoesOnAfterItsWatchIsRemovedDuringAnOutage(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		w := s.start()
		heal := s.cutOff()
		for _, path := range []string{root, root + "/a"} {
			s.must(s.client.Watches().RemoveAll().Locally().Quietly().ForPath(s.ctx, path))
		}
		s.set(root + "/a=2")
		heal()
		w.await("NODE_CHANGED /config/a=2")
		s.set(root+"=3", root+"/a=3", root+"/b=3")
		w.equalsTree()
	})
}

func TestPersistentWatcherGoesOnAfterItsWatchIsRemoved(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		w := cache.NewPersistentWatcher(s.client, root, true)
		want := queueOf(s, w.AddListener, eventText)
		reset := queueOf(s, w.AddResetListener, func(struct{}) string { return "reset" })
		s.must(w.Start())
		s.closing(w)
		reset("reset")
		s.must(s.client.Watches().RemoveAll().ForPath(s.ctx, root))
		reset("reset")
		s.set(root + "=1")
		want("EventNodeCreated /config")
	})
}

// A closed cache removes its watches without an event, and does not set them again.
func TestClosedCacheSetsNoWatchAgain(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		w := s.start()
		s.must(w.Close())
		s.must(s.client.Watches().RemoveAll().Quietly().ForPath(s.ctx, root))
		pause(s.ctx, time.Second)
		testenv.Eventually(t, func() bool { return s.client.Health().Watches == 0 }, "no watch")
	})
}
