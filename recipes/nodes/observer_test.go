package nodes_test

import (
	"testing"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/nodes"
)

// A server without a vote is behind the others, and passes writes on.
func TestNodesThroughObserver(t *testing.T) {
	t.Parallel()
	testenv.OnObserver(t, func(t *testing.T, observer, leader testenv.Place) {
		s := &scene{T: t, ctx: testenv.Context(t), place: observer}
		s.client, s.reader = connect(t, observer, ""), connect(t, leader, "")
		const count = 20 // with a recursive watch
		all := s.startMany(count)
		single := nodes.NewPersistentNode(s.client, "/single/a", builders.Ephemeral, []byte("one"))
		events := s.events(single)
		s.start(single)
		s.next(events, nodes.Created)
		s.awaitMembers(count)
		s.must(s.reader.Delete().ForPath(s.ctx, "/members/0007"))
		s.must(s.reader.Delete().ForPath(s.ctx, "/single/a"))
		s.next(events, nodes.Lost)
		s.next(events, nodes.Created)
		s.awaitOwned("/single/a", "one")
		s.must(single.SetData(s.ctx, []byte("two")))
		s.awaitOwned("/single/a", "two")
		s.awaitMembers(count)

		group := nodes.NewGroupMember(s.client, "/group", "a", nil)
		other := nodes.NewGroupMember(s.reader, "/group", "b", nil)
		for _, m := range []*nodes.GroupMember{group, other} {
			s.must(m.Start())
			s.must(m.Ready(s.ctx))
		}
		awaitBoth := func() {
			t.Helper()
			for _, m := range []*nodes.GroupMember{group, other} {
				testenv.Eventually(s, func() bool { return len(m.CurrentMembers()) == 2 }, "both are in the group")
			}
		}
		awaitBoth()

		session := s.client.SessionID()
		s.must(expireAt(s, leader, session))
		s.next(events, nodes.Lost)
		s.next(events, nodes.Created)
		s.awaitMembers(count)
		s.awaitOwned("/single/a", "two")
		s.awaitOwned("/group/a", "")
		awaitBoth()
		seq := nodes.NewPersistentNode(s.client, "/line/n-", builders.EphemeralSequential, nil)
		s.start(seq)
		numbered := seq.ActualPath()
		for _, n := range append(all, single, seq) {
			s.must(n.Close(s.ctx))
		}
		s.must(group.Close(s.ctx))
		s.must(other.Close(s.ctx))
		s.wantNoMembers()
		s.awaitNothing(numbered)
	})
}

// expireAt ends a session on the server of a place.
func expireAt(s *scene, place testenv.Place, session int64) error {
	if server, ok := place.(*curatortest.Server); ok {
		return server.ExpireSession(session)
	}
	return curatortest.ExpireSession(s.ctx, place.Addr(), session)
}
