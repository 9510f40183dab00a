package nodes_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

// A node below another kept one does not wait for the end of its own pause when that one is created.
func TestPersistentNodeBelowRefusedOneFollowsAtOnce(t *testing.T) {
	inOwnScene(t, func(s *scene) {
		_, err := s.reader.Create().WithACL(zk.WorldACL(zk.PermRead|zk.PermAdmin)...).ForPath(s.ctx, "/closed", nil)
		s.must(err)
		above := nodes.NewPersistentNode(s.client, "/closed/a", builders.Persistent, nil)
		below := nodes.NewPersistentNode(s.client, "/closed/a/b", builders.Ephemeral, nil)
		s.must(above.Start())
		s.must(below.Start())
		for i := range 10 {
			<-time.After(time.Duration(3+i) * time.Minute)
			_, err = s.reader.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(s.ctx, "/closed")
			s.must(err)
			s.must(above.WaitForInitialCreate(s.ctx))
			s.must(below.WaitForInitialCreate(s.ctx))
			_, one := s.get("/closed/a")
			_, two := s.get("/closed/a/b")
			if one == nil || two == nil || two.Ctime-one.Ctime > 500 {
				s.Fatalf("round %d: %+v, %+v", i, one, two)
			}
			s.must(below.Close(s.ctx))
			s.must(above.Close(s.ctx))
			_, err = s.reader.SetACL().WithACL(zk.WorldACL(zk.PermRead|zk.PermAdmin)...).ForPath(s.ctx, "/closed")
			s.must(err)
			above = nodes.NewPersistentNode(s.client, "/closed/a", builders.Persistent, nil)
			below = nodes.NewPersistentNode(s.client, "/closed/a/b", builders.Ephemeral, nil)
			s.must(above.Start())
			s.must(below.Start())
		}
	})
}

// That the old data was too large is no reason for the new data, also before it is written.
func TestPersistentNodeSmallerDataIsNotTooLarge(t *testing.T) {
	inScene(t, func(s *scene) {
		n := s.ephemeral(keptPath, "one")
		s.wantErr(n.SetData(s.ctx, make([]byte, 2<<20)), framework.ErrRequestTooLarge)
		s.wantErr(n.Err(), framework.ErrRequestTooLarge)
		held := s.place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi", "getData", "exists"}, Action: curatortest.HoldRequest, MayMiss: true,
		})
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		s.wantErr(n.SetData(ctx, []byte("two")), context.DeadlineExceeded)
		s.must(n.Err())
		held.Remove()
		s.awaitOwned(keptPath, "two")
	})
}

// A node whose data is larger than the client reads is compared by its version.
func TestPersistentNodeLargerThanReplyIsKept(t *testing.T) {
	const path = "/members/large"
	inScene(t, func(s *scene) {
		large := bytes.Repeat([]byte("x"), 20_000)
		n := nodes.NewPersistentNode(s.client, path, builders.Ephemeral, large)
		events := s.events(n)
		s.start(n)
		s.next(events, nodes.Created)
		s.settle()
		s.must(n.Err())
		for range 2 {
			_, err := s.reader.SetData().ForPath(s.ctx, path, bytes.Repeat([]byte("y"), 20_000))
			s.must(err)
			testenv.Eventually(s, func() bool { data, _ := s.get(path); return data == string(large) }, "set back")
		}
		s.must(n.Close(s.ctx))
	}, framework.WithMaxReply(10_000))
}

// A node that Close leaves in ZooKeeper leaves no watch, also if a read of it is under way.
func TestPersistentTTLNodeClosedWhileReadLeavesNoWatch(t *testing.T) {
	inScene(t, func(s *scene) {
		n := nodes.NewPersistentTTLNode(s.client, ttlPath, time.Hour, nil)
		s.must(n.Start())
		held := s.place.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 2, Action: curatortest.HoldReply})
		s.must(held.Wait(s.ctx))
		s.must(n.Close(s.ctx))
		held.Remove()
		testenv.Eventually(s, func() bool { return s.client.Health().Watches == 0 }, "no watch is left")
	})
}

// Ready waits for the members that joined before the call, also if the cache was complete earlier.
func TestGroupMemberReadyKnowsEarlierMembers(t *testing.T) {
	inScene(t, func(s *scene) {
		m := nodes.NewGroupMember(s.client, "/group", "a", nil)
		s.must(m.Start())
		for i := range 50 {
			s.must(m.Ready(s.ctx))
			id := fmt.Sprint("m", i)
			_, err := s.reader.Create().WithMode(builders.Ephemeral).ForPath(s.ctx, "/group/"+id, nil)
			s.must(err)
			s.must(m.Ready(s.ctx))
			if _, found := m.CurrentMembers()[id]; !found {
				s.Fatalf("%s is missing", id)
			}
		}
		s.must(m.Close(s.ctx))
	})
}
