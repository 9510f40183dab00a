package cache_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// maxNodeBytes bounds the memory of a cached node, without the bytes of its path and data.
const maxNodeBytes = 300

// It is not parallel: it measures the memory of the process.
func TestCacheNodeMemory(t *testing.T) {
	if testenv.Real() {
		t.Skip("100,000 nodes take too long to write")
	}
	withScene(t, false, func(s *scene) {
		const groups, perGroup, pathBytes = 100, 1000, 24 // as they are allocated
		s.set(root)
		for g := range groups {
			group := fmt.Sprintf("%s/g%02d", root, g)
			ops := []builders.TransactionOperation{s.writer.TransactionOp().Create().ForPath(group, []byte{})}
			for n := range perGroup {
				path := fmt.Sprintf("%s/n%03d", group, n)
				ops = append(ops, s.writer.TransactionOp().Create().ForPath(path, []byte{}))
			}
			_, err := s.writer.Transaction().ForOperations(s.ctx, ops...)
			s.must(err)
		}
		heap := func() int64 {
			s.place.Faults().ResetTrace()
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		c := cache.NewCuratorCache(s.client, root)
		s.must(c.Start())
		s.must(c.Ready(s.ctx))
		const count = groups*perGroup + groups + 1
		if c.Size() != count {
			s.Fatalf("size %d", c.Size())
		}
		each := (heap()-before)/count - pathBytes
		s.Logf("%d bytes for each node", each)
		if each > maxNodeBytes {
			s.Errorf("%d bytes for each node, more than %d", each, maxNodeBytes)
		}
		s.must(c.Close())
	})
}
