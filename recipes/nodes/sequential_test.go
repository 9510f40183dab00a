package nodes_test

import (
	"context"
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
)

// The answer to the create is lost, and the data is changed before the node is found.
func TestSequentialNodeFoundByDataOfItsCreate(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.client.CreateContainers(s.ctx, "/members"))
		in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
		hold := s.place.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.HoldRequest})
		n := nodes.NewPersistentNode(s.client, "/members/a-", builders.EphemeralSequential, []byte("one"))
		s.must(n.Start())
		s.must(in.Wait(s.ctx))
		s.must(hold.Wait(s.ctx))
		ended, end := context.WithCancel(s.ctx)
		end()
		_ = n.SetData(ended, []byte("two"))
		hold.Remove()
		s.must(n.WaitForInitialCreate(s.ctx))
		s.wantMember(n.ActualPath(), "two")
		s.must(n.Close(s.ctx))
		s.wantNoMembers()
	})
}

// Nodes that look the same lose the answer to one transaction. Each finds another one of them.
func TestSequentialNodesCreatedTogetherAreFoundOnce(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.client.CreateContainers(s.ctx, "/members"))
		in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
		hold := s.place.Faults().Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.HoldRequest})
		s.place.Faults().CutAll()
		s.must(hold.Wait(s.ctx))
		var all []*nodes.PersistentNode
		for range 3 {
			n := nodes.NewPersistentNode(s.client, "/members/a-", builders.EphemeralSequential, []byte("one"))
			s.must(n.Start())
			all = append(all, n)
		}
		hold.Remove()
		paths := map[string]bool{}
		for _, n := range all {
			s.must(n.WaitForInitialCreate(s.ctx))
			paths[n.ActualPath()] = true
		}
		if in.Hits() == 0 {
			t.Error("no hit")
		}
		members, err := s.reader.GetChildren().ForPath(s.ctx, "/members")
		s.must(err)
		if len(paths) != 3 || len(members) != 3 {
			t.Errorf("%v, %v", paths, members)
		}
		for _, n := range all {
			s.must(n.Close(s.ctx))
		}
		s.wantNoMembers()
	})
}

// A search that the server puts off is no answer.
func TestSequentialNodeSearchThrottled(t *testing.T) {
	for _, op := range []string{"getData", "getChildren2"} {
		t.Run(op, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.must(s.client.CreateContainers(s.ctx, "/members"))
				in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
				th := s.place.Faults().Add(curatortest.Rule{
					Ops: []string{op}, Count: 1, Action: curatortest.ReplyError, Err: framework.ErrThrottledOp,
				})
				n := nodes.NewPersistentNode(s.client, "/members/a-", builders.EphemeralSequential, []byte("one"))
				events := s.events(n)
				s.must(n.Start())
				s.must(n.WaitForInitialCreate(s.ctx))
				if in.Hits() != 1 || th.Hits() != 1 {
					t.Error("no hits")
				}
				s.next(events, nodes.Created)
				s.wantMember(n.ActualPath(), "one")
				s.must(n.Close(s.ctx))
				s.wantNoMembers()
			})
		})
	}
}
