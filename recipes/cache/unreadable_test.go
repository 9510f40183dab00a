package cache_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
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
