package cache_test

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/recipes/cache"
)

// The zxids of the root of a server are 0.
func TestCacheOfTheRootOfTheServer(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		node := "/below-top" + strings.ReplaceAll(s.chroot, "/", "-") // a real server is shared by the two modes
		s.chroot = ""
		s.client, s.writer = s.newClient(s.place), s.newClient(s.place)
		c := cache.NewCuratorCache(s.client, "/", cache.WithMaxDepth(1))
		s.must(c.Start())
		s.closing(c)
		s.must(c.Ready(s.ctx))
		if _, ok := c.Get("/zookeeper"); !ok {
			s.Errorf("size %d, no /zookeeper", c.Size())
		}
		s.set(node)
		defer s.remove(node)
		s.must(c.Sync(s.ctx))
		if _, ok := c.Get(node); !ok {
			s.Errorf("no %s", node)
		}
	})
}
