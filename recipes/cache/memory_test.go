package cache_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/cache"
)

// maxClosedBytes bounds the memory after Close for each node that a cache had. The server in memory, which is in the
// same process, takes 34 of them. A tree that is not released takes about 200.
const maxClosedBytes = 60

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
		c.AddListener(func(context.Context, cache.Event) {})
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
		left := (heap() - before) / count
		s.Logf("%d bytes for each node after Close", left)
		if left > maxClosedBytes {
			s.Errorf("%d bytes for each node are reachable after Close", left)
		}
		if n := c.Size(); n != 0 { // it also keeps the cache
			s.Errorf("%d nodes after Close", n)
		}
	})
}
