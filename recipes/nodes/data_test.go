package nodes_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

// Many changes of the data are no fight with another program.
func TestPersistentNodeDataSetOftenIsWrittenWithoutPauses(t *testing.T) {
	for _, count := range []int{1, 4} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			inScene(t, func(s *scene) {
				n := s.ephemeral(keptPath, "one")
				in := s.place.Faults().Add(curatortest.Rule{Action: curatortest.DelayRequest, Delay: time.Millisecond})
				defer in.Remove()
				start := time.Now()
				var wg sync.WaitGroup
				for g := range count {
					wg.Go(func() {
						for i := range 50 {
							s.must(n.SetData(s.ctx, fmt.Appendf(nil, "%d %d", g, i)))
						}
					})
				}
				wg.Wait()
				if d := time.Since(start); !testenv.Real() && d > 500*time.Millisecond {
					t.Errorf("took %v", d)
				}
			})
		})
	}
}

// New data is written at once after data that is too large.
func TestPersistentNodeDataTooLarge(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, make([]byte, 2<<20))
		events := s.events(n)
		s.must(n.Start())
		s.wantErr(s.next(events, nodes.Refused).Err, framework.ErrRequestTooLarge)
		s.must(n.SetData(s.ctx, nil))
		s.awaitOwned(keptPath, "")
	})
}

// The answers to reads of many nodes are larger than the client accepts.
func TestPersistentNodesWithMuchData(t *testing.T) {
	for _, opts := range [][]framework.Option{nil, {framework.WithMaxReply(1 << 20)}} {
		t.Run(fmt.Sprint(len(opts)), func(t *testing.T) {
			inScene(t, func(s *scene) {
				data := strings.Repeat("x", 40<<10)
				var all []*nodes.PersistentNode
				for i := range 100 {
					n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%d", i), builders.Ephemeral, []byte(data))
					s.must(n.Start())
					all = append(all, n)
				}
				for _, n := range all {
					s.must(n.WaitForInitialCreate(s.ctx))
				}
				reconnected := s.awaitState(framework.Reconnected)
				s.place.Faults().CutAll()
				reconnected()
				s.settle()
				s.reset()
				s.awaitMembers(100)
				_, err := s.reader.SetData().ForPath(s.ctx, "/members/7", nil)
				s.must(err)
				s.awaitOwned("/members/7", data)
				for _, n := range all {
					s.must(n.Err())
				}
			}, opts...)
		})
	}
}
