package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

var readOnlyRequest = jute.ConnectRequest{TimeoutMs: 1000, ReadOnly: true, HasReadOnly: true}

func TestSnapshotSharesNothingWithTheService(t *testing.T) {
	s := New(testConfig())
	t.Cleanup(s.Close)
	c := newClient(t, s.Member(1))
	before := s.Snapshot()
	c = c.again(t, s.Member(1), 50*time.Second)
	c.create(t, "/a")
	if d := before.sessions[c.session.SessionID].timeout; d != 30*time.Second {
		t.Errorf("the timeout in the snapshot is %v", d)
	}
	other := New(testConfig())
	t.Cleanup(other.Close)
	other.Restore(before)
	if exists(other.Member(1), "/a") {
		t.Error("the snapshot has changed")
	}
	taken := c.again(t, other.Member(1), time.Minute)
	taken.create(t, "/b")
	c.create(t, "/c") // of a session that did not end here
}

func TestRestoredServiceGivesNoIDTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // both begin at the same time
		a, b := New(testConfig()), New(testConfig())
		defer a.Close()
		defer b.Close()
		first := newClient(t, a.Member(1))
		b.Restore(a.Snapshot())
		if second := newClient(t, b.Member(1)); second.session.SessionID == first.session.SessionID {
			t.Error("two sessions have one id")
		}
	})
}

func TestRestoreOfALaterEpoch(t *testing.T) {
	a, b := newCluster(t), newCluster(t)
	for range 3 {
		m := leader(t, a)
		m.Stop()
		m.Start()
	}
	newClient(t, leader(t, a)).create(t, "/a")
	b.Restore(a.Snapshot())
	m := leader(t, b)
	m.Stop()
	m.Start()
	newClient(t, leader(t, b)).create(t, "/b")
	for _, m := range b.members {
		if !exists(m, "/a") || !exists(m, "/b") {
			t.Errorf("member %d has not all", m.number)
		}
	}
}

func TestSnapshotWithoutALeaderIsOfTheNewest(t *testing.T) {
	s := newCluster(t)
	s.Member(1).Stop()
	newClient(t, leader(t, s)).create(t, "/a")
	s.Member(2).Stop()
	s.Member(3).Stop()
	if s.Snapshot().tree.get("/a") == nil {
		t.Error("what a quorum had decided is not there")
	}
}
