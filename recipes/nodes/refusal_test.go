package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/nodes"
)

// Each refusal is reported once, and tried again with growing pauses. The node is there as soon as they allow it.
func TestPersistentNodeRefusals(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{
		zk.ErrInvalidACL, zk.ErrNoAuth, framework.ErrQuotaExceeded, zk.ErrNoChildrenForEphemerals,
		framework.ErrUnimplemented,
	} {
		t.Run(refusal.Error(), func(t *testing.T) {
			inScene(t, func(s *scene) {
				in := s.place.Faults().Add(curatortest.Rule{
					Ops: []string{"multi"}, Action: curatortest.ReplyError, Err: refusal,
				})
				n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
				events := s.events(n)
				s.must(n.Start())
				s.wantErr(s.next(events, nodes.Refused).Err, refusal)
				<-time.After(testenv.Size(3*time.Minute, 5*time.Second, 3*time.Minute))
				if !testenv.Real() && (in.Hits() < 6 || in.Hits() > 12) {
					t.Errorf("%d tries", in.Hits())
				}
				s.wantErr(n.Err(), refusal)
				in.Remove()
				if ev := s.next(events, nodes.Created); ev.Path != keptPath {
					t.Errorf("%+v", ev)
				}
				s.must(n.Err())
				s.must(n.Close(s.ctx))
			})
		})
	}
}

// One refused node does not keep the others of its transaction from being there.
func TestPersistentNodeRefusedAmongOthers(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, path := range []string{"/members/0003", "/members/0007"} { // with the ACL that none of ours can use
			_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, path, nil)
			s.must(err)
		}
		bad := nodes.NewPersistentNode(s.client, "/members/0100", builders.Ephemeral, nil, nodes.WithACL(zk.ACL{}))
		badEvents := s.events(bad)
		s.must(bad.Start())
		var all []*nodes.PersistentNode
		for i := range 10 {
			n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%04d", i), builders.Ephemeral, []byte("data"))
			s.must(n.Start())
			all = append(all, n)
		}
		for i, n := range all {
			if i == 3 || i == 7 {
				continue
			}
			s.must(n.WaitForInitialCreate(s.ctx))
		}
		s.wantErr(s.next(badEvents, nodes.Refused).Err, zk.ErrInvalidACL)
		testenv.Eventually(s, func() bool { return all[3].Err() != nil && all[7].Err() != nil }, "refused")
		s.wantErr(all[3].Err(), nodes.ErrForeign)
		s.must(s.reader.Delete().ForPath(s.ctx, "/members/0003"))
		s.must(all[3].WaitForInitialCreate(s.ctx))
		for _, n := range append(all, bad) {
			s.must(n.Close(s.ctx))
		}
	})
}

// Nobody may read the node, so its owner is compared. Newer servers do not show that either: the node of the earlier
// session is refused until it goes.
func TestPersistentNodeWithoutPermissionToRead(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"),
			nodes.WithACL(zk.WorldACL(zk.PermWrite|zk.PermDelete)...))
		events := s.events(n)
		s.start(n)
		s.next(events, nodes.Created)
		s.must(n.SetData(s.ctx, []byte("two")))
		s.reset()
		s.next(events, nodes.Lost)
		for ev := range events {
			if ev.Type == nodes.Created {
				break
			}
			s.wantErr(ev.Err, zk.ErrNoAuth)
		}
		stat, err := s.reader.CheckExists().ForPath(s.ctx, keptPath)
		if !errors.Is(err, zk.ErrNoAuth) && (err != nil || stat == nil || stat.EphemeralOwner != s.client.SessionID()) {
			t.Errorf("%+v, %v", stat, err)
		}
		s.must(n.SetData(s.ctx, []byte("three")))
		s.must(n.Close(s.ctx))
		s.wantNoMembers()
	})
}

func TestPersistentNodeWithoutParentsWaitsForThem(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, nil, nodes.WithoutParents())
		events := s.events(n)
		s.must(n.Start())
		err := s.next(events, nodes.Refused).Err
		s.wantErr(err, zk.ErrNoNode)
		if want := "nodes: /members/a: parent /members: node does not exist"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		s.must(s.reader.CreateContainers(s.ctx, "/members"))
		s.next(events, nodes.Created)
		s.must(n.Close(s.ctx))
	})
}

// The servers refuse to create the parent, and so the node.
func TestPersistentNodeParentRefused(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.reader.Create().WithACL(zk.WorldACL(zk.PermRead)...).ForPath(s.ctx, "/closed", nil)
		s.must(err)
		for _, path := range []string{"/closed/a", "/closed/members/a"} {
			n := nodes.NewPersistentNode(s.client, path, builders.Ephemeral, nil)
			events := s.events(n)
			s.must(n.Start())
			s.wantErr(s.next(events, nodes.Refused).Err, zk.ErrNoAuth)
			s.must(n.Close(s.ctx))
		}
	})
}

// One refused node costs few requests, and all are deleted in the background.
func TestPersistentNodeRefusedAmongHundred(t *testing.T) {
	inScene(t, func(s *scene) {
		s.ctx = s.Context()
		s.must(s.reader.CreateContainers(s.ctx, "/members"))
		s.requests()
		var all []*nodes.PersistentNode
		atOnce := testclient.HoldAnswers(s, s.place.Faults(), s.client)
		for i := range 100 {
			var opts []nodes.NodeOption
			if i == 50 {
				opts = append(opts, nodes.WithACL(zk.ACL{}))
			}
			n := nodes.NewPersistentNode(s.client, fmt.Sprintf("/members/%d", i), builders.Ephemeral, nil, opts...)
			s.must(n.Start())
			all = append(all, n)
		}
		atOnce()
		for i, n := range all {
			if i != 50 {
				s.must(n.WaitForInitialCreate(s.ctx))
			}
		}
		if c, total := s.requests(); total > 20 {
			t.Errorf("%v", c)
		}
		<-time.After(testenv.Size(10*time.Minute, 5*time.Second, 10*time.Minute))
		if c, total := s.requests(); total > 60 {
			t.Errorf("%v", c)
		}
		ended, end := context.WithCancel(s.ctx)
		end()
		for _, n := range all {
			if err := n.Close(ended); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		testenv.Eventually(s, func() bool {
			members, err := s.reader.GetChildren().ForPath(s.ctx, "/members")
			return len(members) == 0 && (err == nil || errors.Is(err, zk.ErrNoNode)) // or the container, too
		}, "all are deleted")
	})
}
