package nodes_test

import (
	"context"
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
		if members, err := s.reader.GetChildren().ForPath(s.ctx, "/group"); err != nil || len(members) > 0 {
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
