package zkserver

import "testing"

func TestPartedMemberGetsNothingFromOtherSide(t *testing.T) {
	s := newCluster(t)
	writer := newClient(t, s.Member(1))
	s.Part([]int{0, 0, 1})
	writer = writer.again(t, s.Member(1), 0)
	writer.create(t, "/a")
	c := dial(t, s.Member(3), readOnlyRequest)
	if c == nil {
		t.Fatal("no session")
	}
	s.Member(3).SetLag(0)
	if exists(s.Member(3), "/a") {
		t.Error("it knows what the other side has written")
	}
}

func TestMemberThatJoinsIsUpToDateHoweverItLags(t *testing.T) {
	s := newCluster(t)
	s.Member(3).SetLag(-1)
	newClient(t, leader(t, s)).create(t, "/a")
	if exists(s.Member(3), "/a") {
		t.Error("it does not lag")
	}
	s.Member(3).Stop()
	changes := s.Changes()
	s.Member(3).Start()
	<-changes
	if !exists(s.Member(3), "/a") {
		t.Error("it has joined with an old tree")
	}
	newClient(t, leader(t, s)).create(t, "/b")
	if exists(s.Member(3), "/b") {
		t.Error("it does not lag any more")
	}
}

func TestSequenceIsSetOnAllMembers(t *testing.T) {
	s := newCluster(t)
	s.Member(2).Stop()
	s.Member(3).SetLag(-1)
	c := newClient(t, leader(t, s))
	c.create(t, "/a")
	if err := s.SetSequence("/a", 100); err != nil {
		t.Fatal(err)
	}
	c.create(t, "/a/x")
	s.Member(2).Start()
	s.Member(3).SetLag(0)
	want, _ := leader(t, s).Node("/a")
	for _, m := range s.members {
		if got, _ := m.Node("/a"); got.Stat != want.Stat {
			t.Errorf("member %d: %+v, want %+v", m.number, got.Stat, want.Stat)
		}
	}
}
