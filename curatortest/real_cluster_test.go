package curatortest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
)

func TestRealCluster(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	ctx := testenv.Context(t)
	cluster, err := curatortest.NewRealCluster(3,
		curatortest.WithConfig("reconfigEnabled", "true"),
		curatortest.WithSystemProperty("zookeeper.skipACL", "yes"))
	must(t, err)
	t.Cleanup(func() { closeServer(t, cluster) })

	servers := cluster.Servers()
	if got := strings.Split(cluster.ConnectString(), ","); len(got) != 3 || len(servers) != 3 ||
		got[1] != servers[1].Addr() {
		t.Fatalf("connect string %s for %d servers", cluster.ConnectString(), len(servers))
	}
	must(t, cluster.AwaitQuorum(ctx))
	leader, err := cluster.Leader()
	must(t, err)
	var followers []*curatortest.RealServer
	for i, s := range servers {
		if s.ID() != i+1 || !strings.HasPrefix(s.Spec(), []string{"server.1=", "server.2=", "server.3="}[i]) {
			t.Errorf("server %d has ID %d and spec %s", i, s.ID(), s.Spec())
		}
		if s != leader {
			followers = append(followers, s)
		}
	}

	witness := newSession(t, leader.Addr())
	witness.create(t, "/data", "before", 0)

	// Each builds on the one before.
	_ = t.Run("sessions", func(t *testing.T) {
		s := newSession(t, followers[1].Addr())
		s.create(t, "/ephemeral", "", zk.FlagEphemeral)
		id := s.SessionID()
		found, err := cluster.FindConnectionInstance(id)
		must(t, err)
		if found != followers[1] {
			t.Errorf("session of server %d found on server %d", followers[1].ID(), found.ID())
		}

		must(t, cluster.DropConnection(id))
		s.await(t, zk.StateDisconnected)
		s.await(t, zk.StateHasSession)
		if s.SessionID() != id {
			t.Fatal("a dropped connection has cost the session")
		}

		must(t, cluster.ExpireSession(id)) // not on the server that has the connection
		s.await(t, zk.StateExpired)
		_, err = witness.Sync("/")
		must(t, err)
		witness.wantExists(t, "/ephemeral", false)
		if _, err := cluster.FindConnectionInstance(id); !errors.Is(err, curatortest.ErrNoServer) {
			t.Errorf("a session that is over: %v", err)
		}

		s.await(t, zk.StateHasSession)
		must(t, cluster.KillSession(s.SessionID()))
		s.await(t, zk.StateExpired)
	}) && t.Run("reconfiguration", func(t *testing.T) {
		stays, leaves := followers[0], followers[1] // a leader that has to leave cuts the connection of the request
		_, err := witness.IncrementalReconfig(nil, []string{fmt.Sprint(leaves.ID())}, -1)
		must(t, err)
		must(t, stays.Restart()) // with what the server itself has written
		s := newSession(t, stays.Addr())
		members(t, s, 2)
		_, err = s.IncrementalReconfig([]string{leaves.Spec()}, nil, -1)
		must(t, err)
		must(t, leaves.AwaitServing(ctx))
		s = newSession(t, leaves.Addr())
		_, err = s.Sync("/zookeeper/config")
		must(t, err)
		members(t, s, 3)
	}) && t.Run("leader is killed", func(t *testing.T) {
		must(t, cluster.AwaitQuorum(ctx))
		old, err := cluster.Leader()
		must(t, err)
		must(t, old.Kill())
		must(t, cluster.AwaitQuorum(ctx))
		leader, err := cluster.Leader()
		must(t, err)
		if leader == old {
			t.Fatal("a dead leader")
		}
		newSession(t, leader.Addr()).wantData(t, "/data", "before")

		must(t, old.Restart())
		newSession(t, old.Addr()).wantData(t, "/data", "before")
	}) && t.Run("leader is frozen", func(t *testing.T) {
		old, err := cluster.Leader()
		must(t, err)
		must(t, old.Freeze())
		must(t, cluster.AwaitQuorum(ctx))
		leader, err := cluster.Leader()
		must(t, err)
		if leader == old {
			t.Fatal("a frozen leader")
		}
		must(t, old.Thaw())
		must(t, old.AwaitServing(ctx))
	}) && t.Run("no quorum", func(t *testing.T) {
		for _, s := range servers[:2] {
			must(t, s.Stop())
		}
		testenv.Eventually(t, func() bool {
			_, err := cluster.Leader()
			return errors.Is(err, curatortest.ErrNoServer)
		}, "the last server leads no other")
		must(t, servers[0].Restart())
		must(t, cluster.AwaitQuorum(ctx))
	})
}

// members fails if the configuration of the ensemble, as the server of the session knows it, has another number.
func members(tb testing.TB, s *session, want int) {
	tb.Helper()
	data, _, err := s.Get("/zookeeper/config")
	must(tb, err)
	if n := strings.Count(string(data), "server."); n != want {
		tb.Fatalf("%d members, want %d: %s", n, want, data)
	}
}

func TestRealClusterClose(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	cluster, err := curatortest.NewRealCluster(1)
	must(t, err)
	s := cluster.Servers()[0]
	if leader, err := cluster.Leader(); err != nil || leader != s {
		t.Errorf("leader %v, error %v", leader, err)
	}
	must(t, cluster.Close())
	must(t, cluster.Close())
	if s.PID() != 0 || s.Restart() == nil {
		t.Error("a server of a closed cluster runs")
	}
	if _, err := curatortest.NewRealCluster(0); err == nil {
		t.Error("a cluster of no servers")
	}
}

func TestRealClusterWithObserver(t *testing.T) {
	testenv.RequireReal(t)
	t.Parallel()
	ctx := testenv.Context(t)
	cluster, err := curatortest.NewRealCluster(2, curatortest.WithObservers(1))
	must(t, err)
	t.Cleanup(func() { closeServer(t, cluster) })
	voter, observer := cluster.Servers()[0], cluster.Servers()[1]
	leader, err := cluster.Leader()
	must(t, err)
	answer, err := observer.FourLetterWord(ctx, "srvr")
	must(t, err)
	if leader != voter || !strings.Contains(answer, "Mode: observer") {
		t.Errorf("server %d leads, and the last server says %s", leader.ID(), answer)
	}
	s := newSession(t, observer.Addr())
	s.create(t, "/data", "", 0)
	must(t, observer.Kill())
	must(t, cluster.AwaitQuorum(ctx)) // it has no vote
	newSession(t, voter.Addr()).wantExists(t, "/data", true)

	for _, observers := range []int{-1, 2} {
		if _, err := curatortest.NewRealCluster(2, curatortest.WithObservers(observers)); err == nil {
			t.Errorf("a cluster of %d observers and no more than two servers", observers)
		}
	}
}
