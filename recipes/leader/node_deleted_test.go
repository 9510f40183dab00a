package leader_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/leader"
)

func TestSelectorNodeDeletedLosesLeadership(t *testing.T) {
	for name, policy := range map[string]framework.ErrorPolicy{
		"standard": framework.StandardErrorPolicy{}, "session": framework.SessionErrorPolicy{},
	} {
		t.Run(name, func(t *testing.T) {
			connect := testenv.ConnectString(t)
			client := newClient(t, connect, framework.WithConnectionStateErrorPolicy(policy))
			f, next := newTurns(), newTurns()
			s := startSelector(t, client, f, leader.WithAutoRequeue())
			first := leader.LeadershipOf(receive(t, f.began, "it leads"))
			startSelector(t, newClient(t, connect), next)
			awaitParticipants(t, s, 2)
			must(t, client.Delete().ForPath(testenv.Context(t), first.Path()))
			if cause := receive(t, f.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
				t.Errorf("cause %v", cause)
			}
			receive(t, next.began, "the next one leads")
			if s.HasLeadership() {
				t.Error("two lead")
			}
			next.stop <- nil
			again := leader.LeadershipOf(receive(t, f.began, "it has lined up anew"))
			if again.Token() <= first.Token() {
				t.Errorf("token %d after %d", again.Token(), first.Token())
			}
		})
	}
}

func TestSelectorNodeDeletedInOutageLosesLeadership(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	client := newClient(t, connect, steady, framework.WithConnectionStateErrorPolicy(framework.SessionErrorPolicy{}))
	read := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.CutBefore})
	f := newTurns()
	startSelector(t, client, f)
	l := leader.LeadershipOf(receive(t, f.began, "it leads"))
	must(t, read.Wait(testenv.Context(t)))
	must(t, newClient(t, direct).Delete().ForPath(testenv.Context(t), l.Path()))
	if cause := receive(t, f.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
		t.Errorf("cause %v", cause)
	}
}

// gatedLatch starts a latch that is first in line, and stops it there.
func gatedLatch(t *testing.T) (
	client *framework.Client, gate *gate, proxy *curatortest.Proxy, direct *framework.Client, latch *leader.LeaderLatch,
	events *history,
) {
	t.Helper()
	proxy, connect, address := newProxy(t)
	client, gate = newGated(t, connect)
	latch, events = startLatch(t, client, "first")
	receive(t, gate.reached, "it is its turn")
	return client, gate, proxy, newClient(t, address), latch, events
}

// The latch is first in line, its connection is lost, and another client deletes its node.
func TestLatchNodeDeletedInOutageDoesNotLead(t *testing.T) {
	for _, when := range []string{"noticed in the outage", "noticed after the outage"} {
		t.Run(when, func(t *testing.T) {
			ctx := testenv.Context(t)
			client, gate, proxy, direct, latch, events := gatedLatch(t)
			states := make(chan framework.ConnectionState, 10)
			client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) { states <- s })
			restore := proxy.Faults().RefuseConnects()
			proxy.Faults().CutAll()
			for receive(t, states, "the connection is lost") != framework.Suspended { // Connected may come late
			}
			must(t, direct.Delete().ForPath(ctx, nodeOf(t, direct, "first")))
			next, _ := startLatch(t, direct, "next")
			await(t, next)
			look := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest})
			if when == "noticed in the outage" {
				close(gate.open)
				restore()
			} else {
				restore()
				receive(t, states, "the connection is back")
				close(gate.open)
			}
			must(t, look.Wait(ctx))
			if latch.HasLeadership() {
				t.Error("two lead")
			}
			look.Release()
			awaitParticipants(t, next, 2)
			if len(events.received) != 0 {
				t.Errorf("got %+v", <-events.received)
			}
			must(t, next.Close())
			events.want(true)
		})
	}
}

// The read that watches the leader's node is refused for a while. Meanwhile another client deletes the node.
func TestParticipantNodeDeletedWhileReadsAreRefusedLosesLeadership(t *testing.T) {
	forEachCandidate(t, func(t *testing.T, start func(tb testing.TB, client *framework.Client) candidate) {
		t.Helper()
		testclient.DeletedWhileReadsAreRefused(t, func(t *testing.T, client *framework.Client) (string, func()) {
			t.Helper()
			l, err := start(t, client).next(testenv.Context(t))
			must(t, err)
			return l.Path(), func() {
				receive(t, l.Context().Done(), "the end of its leadership")
				if cause := context.Cause(l.Context()); !errors.Is(cause, leader.ErrLeadershipLost) {
					t.Errorf("cause %v", cause)
				}
			}
		})
	})
}

// Java notices with the next change of the connection.
func TestLatchNodeDeletedLosesLeadership(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	first, events := startLatch(t, client, "first")
	l := events.want(true).Leadership
	_, eventsOfSecond := startLatch(t, newClient(t, connect), "second")
	awaitParticipants(t, first, 2)
	must(t, client.Delete().ForPath(testenv.Context(t), l.Path()))
	events.want(false)
	eventsOfSecond.want(true)
	awaitParticipants(t, first, 2) // it has lined up anew
}
