package leader_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// In Java: TestLeaderLatchCluster.testInCluster: each latch knows one server, and that of the leader dies.
func TestLatchServerDiesLosesLeadership(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	var clients []*framework.Client
	var latches []*leader.LeaderLatch
	for i, server := range cluster.Servers() {
		clients = append(clients, newClient(t, server.ConnectString()))
		latch, _ := startLatch(t, clients[i], fmt.Sprint(i))
		latches = append(latches, latch)
		awaitParticipants(t, latches[0], i+1)
	}
	l := await(t, latches[0])
	must(t, cluster.KillServer(cluster.Servers()[0]))
	receive(t, l.Context().Done(), "the end of the leadership")
	must(t, cluster.ExpireSession(clients[0].SessionID())) // as after its timeout
	next := await(t, latches[1])
	if n := leads(latches); next.Token() <= l.Token() || n > 1 {
		t.Errorf("%d lead, the next with token %d after %d", n, next.Token(), l.Token())
	}
	must(t, cluster.RestartServer(cluster.Servers()[0]))
	awaitParticipants(t, latches[0], 3)
	if again := await(t, latches[1]); again.Path() != next.Path() || leads(latches) > 1 {
		t.Error("the leader has changed")
	}
}

// In Java: TestLeaderSelectorCluster.testRestart.
func TestSelectorServerDiesLeadsAgain(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	client := newClient(t, cluster.ConnectString())
	f := newTurns()
	startSelector(t, client, f, leader.WithAutoRequeue())
	before := leader.LeadershipOf(receive(t, f.began, "it leads"))
	server, err := cluster.FindConnectionInstance(client.SessionID())
	must(t, err)
	must(t, cluster.KillServer(server))
	if cause := receive(t, f.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
		t.Errorf("cause %v", cause)
	}
	if after := leader.LeadershipOf(receive(t, f.began, "it leads again")); after.Token() <= before.Token() {
		t.Errorf("token %d after %d", after.Token(), before.Token())
	}
}

// In Java: TestLeaderSelectorCluster.testLostRestart.
func TestSelectorAllServersDownLeadsAgain(t *testing.T) {
	cluster := curatortest.NewClusterT(t, 3)
	client := newClient(t, cluster.ConnectString())
	f := newTurns()
	s := startSelector(t, client, f)
	receive(t, f.began, "it leads")
	session := client.Session()
	lost, again := make(chan struct{}), make(chan struct{})
	client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		switch {
		case state == framework.Lost:
			close(lost)
		case state == framework.Reconnected && session.Context().Err() != nil:
			close(again)
		}
	})
	for _, server := range cluster.Servers() {
		must(t, cluster.KillServer(server))
	}
	receive(t, f.ended, "the end of the turn")
	if s.HasLeadership() {
		t.Error("it leads without a server")
	}
	for _, server := range cluster.Servers() {
		must(t, cluster.RestartServer(server))
	}
	must(t, cluster.ExpireSession(session.ID())) // as after its timeout
	receive(t, lost, "the session is lost")
	receive(t, again, "there is another")
	if len(f.began) != 0 || s.HasLeadership() {
		t.Error("it leads without being queued")
	}
	testenv.Eventually(t, s.Requeue, "it is queued again")
	receive(t, f.began, "it leads again")
	awaitParticipants(t, s, 1) // its first node is gone
}
