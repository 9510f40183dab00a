package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

func TestGroupMembersKnowEachOther(t *testing.T) {
	inScene(t, func(s *scene) {
		one := nodes.NewGroupMember(s.client, "/group", "one", []byte("1"))
		two := nodes.NewGroupMember(s.reader, "/group", "two", nil)
		for _, m := range []*nodes.GroupMember{one, two} {
			s.must(m.Start())
			s.must(m.Ready(s.ctx))
		}
		want := func(m *nodes.GroupMember, members map[string][]byte) {
			s.Helper()
			testenv.Eventually(s, func() bool { return cmp.Equal(m.CurrentMembers(), members) }, fmt.Sprint(members))
		}
		ctx, cancel := context.WithCancel(s.ctx)
		changes := make(chan nodes.MemberEvent, 100)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ev := range one.Changes(ctx) {
				changes <- ev
			}
		}()
		next := func(want nodes.MemberEvent) {
			s.Helper()
			if ev := <-changes; !cmp.Equal(ev, want) {
				s.Errorf("%+v, want %+v", ev, want)
			}
		}
		both := map[string][]byte{"one": []byte("1"), "two": {}}
		want(one, both)
		want(two, both)
		next(nodes.MemberEvent{ID: "one", Payload: []byte("1")})
		next(nodes.MemberEvent{ID: "two", Payload: []byte{}})
		s.must(two.SetThisData(s.ctx, []byte("2")))
		want(one, map[string][]byte{"one": []byte("1"), "two": []byte("2")})
		next(nodes.MemberEvent{ID: "two", Payload: []byte("2")})
		s.must(two.Close(s.ctx))
		want(one, map[string][]byte{"one": []byte("1")})
		next(nodes.MemberEvent{ID: "two", Left: true})
		if id := one.IDFromPath("/group/two"); id != "two" {
			t.Errorf("the id is %s", id)
		}
		cancel()
		<-ended
		s.must(one.Close(s.ctx))
		members, err := s.reader.GetChildren().ForPath(s.ctx, "/group")
		if err != nil && !errors.Is(err, zk.ErrNoNode) || len(members) > 0 { // the server removes the empty container
			t.Errorf("%v, %v", members, err)
		}
	})
}

func TestGroupMemberBadID(t *testing.T) {
	inScene(t, func(s *scene) {
		for _, id := range []string{"", "a/b", ".", "/"} {
			err := nodes.NewGroupMember(s.client, "/group", id, nil).Start()
			s.wantErr(err, zk.ErrInvalidPath)
			if want := fmt.Sprintf("nodes: start: invalid path: the id %q is no name of a node", id); err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
		}
		const want = `nodes: start: invalid path: "group": no slash at byte 0`
		if err := nodes.NewGroupMember(s.client, "group", "a", nil).Start(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %v", err, want)
		}
	})
}

// A member that cannot know the others is not ready: it would take itself for the only one.
func TestGroupMemberOfGroupThatMayNotBeRead(t *testing.T) {
	inScene(t, func(s *scene) {
		_, err := s.reader.Create().WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...).ForPath(s.ctx, "/group", nil)
		s.must(err)
		_, err = s.reader.Create().ForPath(s.ctx, "/group/other", nil)
		s.must(err)
		m := nodes.NewGroupMember(s.client, "/group", "one", nil)
		s.must(m.Start())
		s.wantErr(m.Ready(s.ctx), zk.ErrNoAuth)
		s.wantErr(m.Err(), zk.ErrNoAuth)
		_, err = s.reader.SetACL().WithACL(zk.WorldACL(zk.PermAll)...).ForPath(s.ctx, "/group")
		s.must(err)
		testenv.Eventually(s, func() bool { return m.Err() == nil }, "the group is read")
		s.must(m.Ready(s.ctx))
		if members := m.CurrentMembers(); len(members) != 2 {
			t.Errorf("members: %v", members)
		}
		s.must(m.Close(s.ctx))
	})
}

// A member whose payload may not be read is none that the others know, and keeps nobody waiting.
func TestGroupMemberThatMayNotBeRead(t *testing.T) {
	inScene(t, func(s *scene) {
		one := nodes.NewGroupMember(s.client, "/group", "one", nil)
		acl := nodes.WithACL(zk.WorldACL(zk.PermWrite | zk.PermDelete)...)
		two := nodes.NewGroupMember(s.reader, "/group", "two", nil, acl)
		for _, m := range []*nodes.GroupMember{two, one} {
			s.must(m.Start())
			s.must(m.Ready(s.ctx))
		}
		if members := one.CurrentMembers(); len(members) != 1 {
			t.Errorf("members: %v", members)
		}
		s.must(one.Close(s.ctx))
		s.must(two.Close(s.ctx))
	})
}

// The second process with an id gets an error, and is in when the first one leaves.
func TestGroupMembersWithTheSameID(t *testing.T) {
	inScene(t, func(s *scene) {
		one := nodes.NewGroupMember(s.client, "/group", "a", []byte("1"))
		two := nodes.NewGroupMember(s.reader, "/group", "a", []byte("2"))
		s.must(one.Start())
		s.must(one.Ready(s.ctx))
		s.must(two.Start())
		testenv.Eventually(s, func() bool { return errors.Is(two.Err(), nodes.ErrForeign) }, "reported")
		if data, _ := s.get("/group/a"); data != "1" {
			t.Errorf("the node has %q", data)
		}
		s.must(one.Close(s.ctx))
		s.must(two.Ready(s.ctx))
		if data, _ := s.get("/group/a"); data != "2" {
			t.Errorf("the node has %q", data)
		}
		s.must(two.Close(s.ctx))
	})
}
