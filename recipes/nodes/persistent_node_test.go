package nodes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/nodes"
)

func TestPersistentNodeLife(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.wantErr(n.WaitForInitialCreate(s.ctx), nodes.ErrNotStarted)
		s.start(n)
		s.wantErr(n.Start(), nodes.ErrStarted)
		s.next(events, nodes.Created)
		s.awaitOwned(keptPath, "one")
		if got := n.ActualPath(); got != keptPath {
			t.Errorf("path %s", got)
		}
		s.must(n.SetData(s.ctx, []byte("two")))
		if data, _ := s.get(keptPath); data != "two" || string(n.Data()) != "two" {
			t.Errorf("the node has %s", data)
		}
		s.must(n.SetData(s.ctx, nil))
		if data, _ := s.get(keptPath); data != "" {
			t.Errorf("the node has %s", data)
		}
		other := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, nil)
		s.wantErr(other.Start(), nodes.ErrInUse)
		s.must(n.Close(s.ctx))
		if _, stat := s.get(keptPath); stat != nil {
			t.Error("the node is there after Close")
		}
		s.wantErr(n.SetData(s.ctx, nil), framework.ErrClosed)
		s.wantErr(n.Start(), framework.ErrClosed)
		s.must(n.Close(s.ctx))
		s.start(other)
		s.must(other.Close(s.ctx))
	})
}

func TestPersistentNodeDeletedByOtherIsCreatedAgain(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.start(n)
		s.next(events, nodes.Created)
		for range 3 {
			s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
			s.next(events, nodes.Lost)
			s.next(events, nodes.Created)
			s.awaitOwned(keptPath, "one")
		}
	})
}

func TestPersistentNodeDataOfOtherIsOverwritten(t *testing.T) {
	inScene(t, func(s *scene) {
		s.ephemeral(keptPath, "one")
		for range 3 {
			_, err := s.reader.SetData().ForPath(s.ctx, keptPath, []byte("theirs"))
			s.must(err)
			s.awaitOwned(keptPath, "one")
		}
	})
}

func TestPersistentNodeParentDeletedByOtherIsCreatedAgain(t *testing.T) {
	inScene(t, func(s *scene) {
		s.ephemeral(keptPath, "one")
		// A server may delete the empty container first.
		s.must(s.reader.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(s.ctx, "/members"))
		s.awaitOwned(keptPath, "one")
	})
}

func TestPersistentNodeSessionExpired(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.start(n)
		s.next(events, nodes.Created)
		session := s.client.SessionID()
		s.expire(session)
		s.next(events, nodes.Lost)
		s.next(events, nodes.Created)
		if s.client.SessionID() == session {
			t.Error("the session is the same")
		}
		s.awaitOwned(keptPath, "one")
	})
}

// The session that Reset leaves lives on, on the server, with its node.
func TestPersistentNodeOfEarlierSessionIsReplaced(t *testing.T) {
	inScene(t, func(s *scene) {
		s.ephemeral(keptPath, "one")
		var before int64
		for range 3 {
			before = s.reset()
			s.awaitOwned(keptPath, "one")
		}
		_, stat := s.get(keptPath)
		s.expire(before)
		if _, after := s.get(keptPath); after == nil || after.Czxid != stat.Czxid {
			t.Error("the node went with an earlier session")
		}
	})
}

func TestPersistentNodeOfOtherSessionIsReportedAndLeft(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.reader.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral).
			ForPath(s.ctx, keptPath, []byte("theirs"))
		s.must(err)
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.must(n.Start())
		refused := s.next(events, nodes.Refused)
		s.wantErr(refused.Err, nodes.ErrForeign)
		s.wantErr(refused.Err, zk.ErrNodeExists)
		s.wantErr(n.Err(), nodes.ErrForeign)
		s.wantErr(n.SetData(s.ctx, []byte("two")), nodes.ErrForeign)
		ended, cancel := context.WithCancel(s.ctx)
		cancel()
		err = n.WaitForInitialCreate(ended)
		s.wantErr(err, context.Canceled)
		s.wantErr(err, nodes.ErrForeign)
		if strings.Count(err.Error(), "nodes: ") != 1 {
			t.Errorf("%q has not one prefix", err)
		}
		if data, _ := s.get(keptPath); data != "theirs" {
			t.Errorf("the node has %s", data)
		}
		s.must(s.reader.Delete().ForPath(s.ctx, keptPath))
		s.next(events, nodes.Created)
		s.awaitOwned(keptPath, "two")
		s.must(n.Err())
	})
}

func TestPersistentNodeCloseLeavesNodeOfOther(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.reader.Create().CreatingParentsIfNeeded().WithMode(builders.Ephemeral).
			ForPath(s.ctx, keptPath, []byte("theirs"))
		s.must(err)
		n := nodes.NewPersistentNode(s.client, keptPath, builders.Ephemeral, []byte("one"))
		events := s.events(n)
		s.must(n.Start())
		s.next(events, nodes.Refused)
		s.must(n.Close(s.ctx))
		if data, _ := s.get(keptPath); data != "theirs" {
			t.Errorf("the node has %s", data)
		}
	})
}
