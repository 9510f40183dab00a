package cache_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// Nodes that cannot be read are tried again with growing pauses, which end at different times.
func TestCacheReadsManyUnreadableNodesTogether(t *testing.T) {
	t.Parallel()
	const nodes = 300
	withScene(t, false, func(s *scene) {
		s.set(root)
		for i := range nodes {
			s.set(fmt.Sprintf("%s/node-%d", root, i))
		}
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multiRead"}, Path: "/**" + root + "/*", Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		c := s.newCache()
		s.begin(c)
		s.must(c.Ready(s.ctx))
		if err := c.Err(root + "/node-7"); !errors.Is(err, zk.ErrNoAuth) {
			s.Errorf("the error is %v", err)
		}
		s.place.Faults().ResetTrace()
		const tries = 5
		time.Sleep(5 * time.Second) // time for as many
		n := 0
		for _, e := range s.place.Faults().Trace() {
			if !e.Reply && e.Op == "multiRead" {
				n++
			}
		}
		if n == 0 || n > 10*tries {
			s.Errorf("%d requests for %d nodes", n, nodes)
		}
	})
}

// Parents and children are wanted again at the same time, in any order.
func TestCacheCreatesParentsFirstWhenBothCanBeReadAgain(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root)
		w := s.start()
		refusal := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multiRead"}, Path: "/**" + root + "/**", Action: curatortest.ReplyError, Err: zk.ErrInvalidACL,
		})
		const parents = 10
		for i := range parents {
			s.set(fmt.Sprintf("%s/parent-%d/child", root, i))
		}
		last := fmt.Sprintf("%s/parent-%d/child", root, parents-1)
		testenv.Eventually(t, func() bool { return w.Err(last) != nil }, "the error of the last child")
		refusal.Remove()
		testenv.Eventually(t, func() bool {
			for i := range parents {
				parent := fmt.Sprintf("%s/parent-%d", root, i)
				if w.Err(parent) != nil || w.Err(parent+"/child") != nil {
					return false
				}
			}
			return true
		}, "the reads of all nodes")
		w.equalsTree() // each event is checked
	})
}

// The first read of the parent is refused, and every later read succeeds: the list of its children, and the child. The
// parent is not read again before a pause of 100 ms.
func TestCacheCreatesParentFirstWhenItCanBeReadAgainBeforeTheRetry(t *testing.T) {
	t.Parallel()
	inScene(t, func(s *scene) {
		s.set(root)
		w := s.start()
		s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multiRead", "getData"}, Path: s.chroot + root + "/a", Action: curatortest.ReplyError,
			Err: zk.ErrInvalidACL, Count: 1,
		})
		s.set(root + "/a/b/c")
		testenv.Eventually(t, func() bool { _, ok := w.Get(root + "/a"); return ok }, "the parent in the cache")
		w.wantEvents("NODE_CREATED "+root+"/a", "NODE_CREATED "+root+"/a/b", "NODE_CREATED "+root+"/a/b/c")
		w.equalsTree()
	})
}

// Two lists of the children are under way, and the second fails. The next read finds the list complete.
func TestCacheErrorOfASecondListEnds(t *testing.T) {
	t.Parallel()
	withScene(t, false, func(s *scene) {
		s.set(root+"=1", root+"/a=1")
		// An answer that is older than an eighth of the timeout would hold back the request of the list.
		s.client = s.newClient(s.place, framework.WithSessionTimeout(time.Minute))
		s.place.Faults().ResetTrace()
		faults, reads := s.place.Faults(), []string{"multiRead"}
		refusal := faults.Add(curatortest.Rule{ // after two reads of the data and a list
			Ops: reads, Path: s.chroot + root, Action: curatortest.ReplyError, Err: zk.ErrInvalidACL, Skip: 3, Count: 1,
		})
		again := faults.Add(curatortest.Rule{ // the error lasts until it is seen
			Ops: reads, Path: s.chroot + root, Action: curatortest.HoldRequest, Skip: 4, Count: 1,
		})
		request := faults.Add(curatortest.Rule{Ops: reads, Action: curatortest.HoldRequest, Count: 1})
		reply := faults.Add(curatortest.Rule{Ops: reads, Action: curatortest.HoldReply, Skip: 1, Count: 1})
		w := s.newCache()
		s.begin(w)
		s.must(request.Wait(s.ctx))
		s.set(root + "=2")
		pause(s.ctx, time.Second) // the data is requested twice by then
		request.Release()
		s.must(reply.Wait(s.ctx))
		testenv.Eventually(t, func() bool { return s.requests(reads...) == 3 }, "the request of the list")
		reply.Release()
		s.must(refusal.Wait(s.ctx))
		testenv.Eventually(t, func() bool { return w.Err(root) != nil }, "the error of the second list")
		again.Release()
		testenv.Eventually(t, func() bool { return w.Err(root) == nil }, "the end of the error")
		w.equalsTree()
	})
}
