package nodes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

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

// A node that may not be read for the moment may be that of the create: another create would leave two.
func TestSequentialNodeSearchRefused(t *testing.T) {
	for name, refusals := range map[string][]curatortest.Rule{
		"the data":     {{Ops: []string{"getData"}, Count: 3}},
		"the Stat too": {{Ops: []string{"getData"}, Count: 3}, {Ops: []string{"exists"}, Count: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, func(s *scene) {
				s.must(s.client.CreateContainers(s.ctx, "/members"))
				in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
				hits := []*curatortest.Injection{in}
				for _, rule := range refusals {
					rule.Action, rule.Err = curatortest.ReplyError, zk.ErrNoAuth
					hits = append(hits, s.place.Faults().Add(rule))
				}
				n := nodes.NewPersistentNode(s.client, "/members/a-", builders.EphemeralSequential, []byte("one"))
				s.must(n.Start())
				s.must(n.WaitForInitialCreate(s.ctx))
				for i, in := range hits {
					if in.Hits() == 0 {
						t.Errorf("rule %d: no hit", i)
					}
				}
				s.wantMember(n.ActualPath(), "one")
				s.must(n.Close(s.ctx))
				s.wantNoMembers()
			})
		})
	}
}

// The node of another session that may not be read is none of ours.
func TestSequentialNodeSearchPassesUnreadableNodesOfOthers(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.client.CreateContainers(s.ctx, "/members"))
		others, err := s.reader.Create().WithMode(builders.EphemeralSequential).
			WithACL(zk.DigestACL(zk.PermAll, "u", "p")...).ForPath(s.ctx, "/members/a-", []byte("one"))
		s.must(err)
		in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutBefore})
		n := nodes.NewPersistentNode(s.client, "/members/a-", builders.EphemeralSequential, []byte("one"))
		s.must(n.Start())
		s.must(n.WaitForInitialCreate(s.ctx))
		if in.Hits() != 1 || n.ActualPath() == others {
			t.Errorf("%d hits; it has %s, and another %s", in.Hits(), n.ActualPath(), others)
		}
		s.must(n.Close(s.ctx))
		s.must(s.reader.Delete().ForPath(s.ctx, others))
		s.wantNoMembers()
	})
}

// A provider that fails says nothing about the node, which may be that of the create.
func TestSequentialNodeSearchGoesOnWhenDecompressFails(t *testing.T) {
	p := &provider{bad: "/members/a-0000000000"}
	fails := func(what string) error {
		if what == "Decompress" && p.calls.Load() < 3 {
			return errors.New("on purpose")
		}
		return nil
	}
	p.fails.Store(&fails)
	inOwnScene(t, func(s *scene) {
		s.must(s.client.CreateContainers(s.ctx, "/members"))
		s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
		n := nodes.NewPersistentNode(s.client, "/members/a-", builders.EphemeralSequential, []byte("one"))
		s.must(n.Start())
		s.must(n.WaitForInitialCreate(s.ctx))
		if p.calls.Load() < 3 {
			t.Error("the provider was not asked")
		}
		s.wantMember(n.ActualPath(), "one")
		s.must(n.Close(s.ctx))
		s.wantNoMembers()
	}, framework.WithCompressionProvider(p), framework.WithCompression())
}

// A node of the program, in the same session, has data that does not decompress: it is not what was sent.
func TestSequentialNodeSearchPassesNodesThatDoNotDecompress(t *testing.T) {
	inScene(t, func(s *scene) {
		s.must(s.client.CreateContainers(s.ctx, "/members"))
		own, err := s.client.Create().WithMode(builders.EphemeralSequential).Uncompressed().
			ForPath(s.ctx, "/members/a-", []byte("one"))
		s.must(err)
		in := s.place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutBefore})
		n := nodes.NewPersistentNode(s.client, "/members/a-", builders.EphemeralSequential, []byte("one"))
		s.must(n.Start())
		s.must(n.WaitForInitialCreate(s.ctx))
		if in.Hits() != 1 || n.ActualPath() == own {
			t.Errorf("%d hits; it has %s, and the program %s", in.Hits(), n.ActualPath(), own)
		}
		s.must(n.Close(s.ctx))
	}, framework.WithCompression())
}
