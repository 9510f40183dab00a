package cache_test

import (
	"testing"

	"github.com/gocurator/curator/recipes/cache"
)

// The zxids of the root of a server are 0.
func TestCacheOfTheRootOfTheServer(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.chroot = ""
		s.client, s.writer = s.newClient(s.place), s.newClient(s.place)
		c := cache.NewCuratorCache(s.client, "/", cache.WithMaxDepth(1))
		s.must(c.Start())
		s.closing(c)
		s.must(c.Ready(s.ctx))
		if _, ok := c.Get("/zookeeper"); !ok {
			s.Errorf("size %d, no /zookeeper", c.Size())
		}
		s.set("/cache-below-top")
		defer s.remove("/cache-below-top")
		s.must(c.Sync(s.ctx))
		if _, ok := c.Get("/cache-below-top"); !ok {
			s.Errorf("no /cache-below-top")
		}
	})
}
