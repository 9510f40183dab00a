package nodes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

// The views of a client share the nodes, and each node is in its namespace.
func TestPersistentNodeInNamespace(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, mode := range []builders.CreateMode{builders.Ephemeral, builders.EphemeralSequential} {
			n := nodes.NewPersistentNode(s.client.UsingNamespace("team/app"), keptPath, mode, []byte("one"))
			s.start(n)
			s.awaitOwned("/team/app"+n.ActualPath(), "one")
			whole := nodes.NewPersistentNode(s.client, "/team/app"+n.ActualPath(), builders.Ephemeral, nil)
			s.wantErr(whole.Start(), nodes.ErrInUse)
			// Quietly: the server removes containers itself as soon as they are empty.
			s.must(s.reader.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(s.ctx, "/team"))
			s.awaitOwned("/team/app"+n.ActualPath(), "one")
			s.reset()
			s.awaitOwned("/team/app"+n.ActualPath(), "one")
			path := n.ActualPath()
			s.must(n.Close(s.ctx))
			if _, stat := s.get("/team/app" + path); stat != nil {
				t.Error("left")
			}
		}
	})
}

// A fenced node is there as long as the fence: then nobody writes it any more. Its deletion is not fenced.
func TestPersistentNodeOfFencedClient(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.reader.Create().ForPath(s.ctx, "/term", nil)
		s.must(err)
		lost := errors.New("the term is over")
		n := nodes.NewPersistentNode(s.client.Fenced(s.ctx, lost, "/term"), keptPath, builders.Ephemeral, []byte("one"))
		s.start(n)
		s.must(s.reader.Delete().ForPath(s.ctx, "/term"))
		s.wantErr(n.SetData(s.ctx, []byte("two")), lost)
		s.awaitOwned(keptPath, "one")
		s.must(n.Close(s.ctx))
		s.wantNoMembers()
	})
}

// The client is closed first: the ephemeral node goes with its session, and Close returns.
func TestPersistentNodeClientClosedFirst(t *testing.T) {
	inScene(t, func(s *scene) {
		client := connect(s.T, s.place, s.chroot)
		n := nodes.NewPersistentNode(client, keptPath, builders.Ephemeral, nil)
		s.start(n)
		lasting := nodes.NewPersistentNode(client, "/lasting", builders.Persistent, nil)
		s.start(lasting)
		s.must(client.Close())
		s.must(n.Close(s.ctx))
		s.wantErr(lasting.Close(s.ctx), framework.ErrClosed)
		s.wantErr(nodes.NewPersistentNode(client, "/late", builders.Ephemeral, nil).Start(), framework.ErrClosed)
		s.wantNoMembers()
	})
}

// A node that is started before its client, and without a server, is there when both are.
func TestPersistentNodeStartedBeforeItsClient(t *testing.T) {
	inScene(t, func(s *scene) {
		client, err := framework.New(s.place.Addr()+s.chroot, framework.WithDialer(s.place.DialContext),
			framework.WithSessionTimeout(testenv.SessionTimeout))
		s.must(err)
		n := nodes.NewPersistentNode(client, keptPath, builders.Ephemeral, []byte("one"))
		s.must(n.SetData(s.ctx, []byte("two")))
		s.must(n.Start())
		restore := s.place.Faults().RefuseConnects()
		s.must(client.Start())
		<-time.After(2 * time.Second)
		restore()
		s.must(n.WaitForInitialCreate(s.ctx))
		if data, stat := s.get(keptPath); data != "two" || stat.EphemeralOwner != client.SessionID() {
			t.Errorf("%q, %+v", data, stat)
		}
		s.must(client.Close())
	})
}

// Existing nodes of other modes are adopted.
func TestPersistentNodeAdoptsNodeWithoutOwner(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.reader.Create().CreatingParentsIfNeeded().ForPath(s.ctx, keptPath, []byte("theirs"))
		s.must(err)
		ephemeral := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(ephemeral)
		s.must(ephemeral.Start())
		s.wantErr(s.next(events, nodes.Refused).Err, nodes.ErrForeign)
		s.must(ephemeral.Close(s.ctx))
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Persistent, []byte("one"))
		s.start(n)
		data, stat := s.get(keptPath)
		if data != "one" || stat.Version != 1 || stat.EphemeralOwner != 0 {
			t.Errorf("%q, %+v", data, stat)
		}
		s.expire(s.client.SessionID())
		s.must(n.SetData(s.ctx, []byte("two")))
		s.must(n.Close(s.ctx))
		s.wantNoMembers()
	})
}

// A node that another program keeps changing, or deletes again and again, does not become a loop without pauses.
func TestPersistentNodeAgainstAnotherProgram(t *testing.T) {
	inScene(t, func(s *scene) {
		theirs := nodes.NewPersistentNode(s.reader, keptPath, builders.Persistent, []byte("theirs"))
		s.start(theirs)
		ours := nodes.NewPersistentNode(s.client, keptPath, builders.Persistent, []byte("ours"))
		s.must(ours.Start())
		s.requests()
		<-time.After(10 * time.Second)
		if counts, total := s.requests(); total > 400 {
			t.Errorf("%v", counts)
		}
		s.must(theirs.Close(s.ctx))
		testenv.Eventually(s, func() bool { data, _ := s.get(keptPath); return data == "ours" }, "ours")
		s.must(ours.Close(s.ctx))
		s.wantNoMembers()
	})
}

func TestPersistentNodeBadPath(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, path := range []string{"", "a", "/a/", "/"} {
			n := nodes.NewPersistentNode(s.client, path, builders.Ephemeral, nil)
			s.wantErr(n.Start(), zk.ErrInvalidPath)
		}
	})
}

func TestPersistentNodeOfModeWithTTL(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, mode := range []builders.CreateMode{builders.PersistentWithTTL, builders.PersistentSequentialWithTTL} {
			err := nodes.NewPersistentNode(s.client, keptPath, mode, nil).Start()
			s.wantErr(err, framework.ErrBadArguments)
			if err != nil && !strings.Contains(err.Error(), "PersistentTTLNode") {
				t.Errorf("%q does not say what to use", err)
			}
		}
	})
}
