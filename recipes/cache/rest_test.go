package cache_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/zkpath"
)

// A program may keep a cache for each of thousands of values. The test is not parallel: it looks at all goroutines.
func TestCacheThatRestsHasNoGoroutine(t *testing.T) {
	withScene(t, false, func(s *scene) {
		s.set(root)
		for _, name := range []string{"a", "b", "c"} {
			c := cache.NewNodeCache(s.client, zkpath.Join(root, name))
			s.must(c.StartAndBuild(s.ctx))
			defer c.Close() //nolint:errcheck // always nil
		}
		w := s.start()
		s.set(root+"/a=1", root+"/b=1")
		w.equalsTree()
		testenv.Eventually(t, func() bool {
			stacks := make([]byte, 1<<20)
			all := string(stacks[:runtime.Stack(stacks, true)])
			return !strings.Contains(all, "cache.(*engine).run") && !strings.Contains(all, "waitqueue.(*Serial).run")
		}, "no cache has a goroutine")
	})
}
