package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
	"github.com/gocurator/curator/retry"
)

// leads counts the latches that lead.
func leads(latches []*leader.LeaderLatch) (n int) {
	for _, latch := range latches {
		if latch.HasLeadership() {
			n++
		}
	}
	return n
}

// awaitLost waits until the session is lost.
func awaitLost(tb testing.TB, session *framework.Session) {
	tb.Helper()
	select {
	case <-session.Context().Done():
	case <-testenv.Context(tb).Done():
		tb.Fatal("the session is not lost")
	}
}

// In Java: TestLeaderLatch.testErrorPolicies, TestLeaderSelector.testErrorPolicies: with the policy of the session,
// leadership ends with the session.
func TestParticipantSessionErrorPolicyLeadsUntilSessionEnds(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, proxy testenv.Place, chroot string) {
		client := newClient(t, proxy.Addr()+chroot, framework.WithDialer(proxy.DialContext),
			framework.WithSessionTimeout(testenv.SessionTimeout),
			framework.WithConnectionStateErrorPolicy(framework.SessionErrorPolicy{}))
		latch, events := startLatch(t, client, "latch")
		events.want(true)
		f := newTurns()
		s := startSelector(t, client, f)
		receive(t, f.began, "it leads")
		session := client.Session()
		suspended := make(chan struct{})
		client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
			if state != framework.Suspended { // which both have received before
				return
			}
			if led := latch.HasLeadership() && s.HasLeadership(); !led && session.Context().Err() == nil {
				t.Error("leadership has ended while the session lives")
			}
			close(suspended)
		})
		restore := proxy.Faults().RefuseConnects()
		proxy.Faults().CutAll()
		receive(t, suspended, "the connection is lost")
		if cause := receive(t, f.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
			t.Errorf("cause %v", cause)
		}
		events.want(false)
		if session.Context().Err() == nil || latch.HasLeadership() {
			t.Error("leadership has not ended with the session")
		}
		restore()
		events.want(true)
	})
}

// In Java: TestLeaderLatch.testLostConnection, TestResetConnectionWithBackgroundFailure.testConnectionStateListener.
func TestParticipantsOfOneClientJoinEachSession(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, proxy testenv.Place, chroot string) {
		restore := proxy.Faults().RefuseConnects()
		client := newClient(t, proxy.Addr()+chroot, framework.WithDialer(proxy.DialContext),
			framework.WithSessionTimeout(testenv.SessionTimeout))
		var latches []*leader.LeaderLatch
		for i := range 4 {
			latch, _ := startLatch(t, client, fmt.Sprint(i))
			latches = append(latches, latch)
		}
		never, f := newTurns(), newTurns()
		must(t, startSelector(t, client, never).Close())
		s := startSelector(t, client, f, leader.WithAutoRequeue()) // on the same path: its nodes have another name
		one := func() {
			t.Helper()
			testenv.Eventually(t, s.HasLeadership, "the selector leads")
			testenv.Eventually(t, func() bool { return leads(latches) > 0 }, "a latch leads")
			awaitParticipants(t, latches[0], len(latches))
			if n := leads(latches); n > 1 {
				t.Errorf("%d lead", n)
			}
		}
		restore()
		one()
		session := client.Session()
		restore = proxy.Faults().RefuseConnects()
		proxy.Faults().CutAll()
		awaitLost(t, session)
		if n := leads(latches); n != 0 || s.HasLeadership() {
			t.Errorf("%d lead without a session, the selector: %t", n, s.HasLeadership())
		}
		restore()
		one()
		for _, latch := range latches {
			must(t, latch.Close())
		}
		must(t, s.Close())
		testenv.Eventually(t, func() bool {
			children, err := client.GetChildren().ForPath(testenv.Context(t), electionPath)
			return err != nil || len(children) == 0
		}, "no node is left")
		if len(never.began) != 0 {
			t.Error("the closed one has led")
		}
	})
}

// A loss takes from all clients of a connect string what they had at the server.
type loss func(t *testing.T) (connect string, lose func(client *framework.Client))

func lossOfSession(t *testing.T) (connect string, lose func(client *framework.Client)) {
	t.Helper()
	return testenv.ConnectString(t), func(client *framework.Client) {
		must(t, testenv.Server(t).ExpireSession(client.SessionID()))
	}
}

// lossOfServer has another server in the place of the first, with a history of its own.
func lossOfServer(t *testing.T) (connect string, lose func(client *framework.Client)) {
	t.Helper()
	first, second := testenv.NewServer(t), testenv.NewServer(t)
	other := newClient(t, second.ConnectString())
	for range 100 { // a server that has seen less than a client turns it away as long as its session lasts
		_, err := other.Create().WithMode(builders.EphemeralSequential).ForPath(testenv.Context(t), "/n-", nil)
		must(t, err)
	}
	proxy := curatortest.NewProxyT(t, first.Addr())
	return proxy.Addr(), func(*framework.Client) {
		proxy.SetTarget(second.Addr())
		proxy.Faults().CutAll()
	}
}

// lossOfNodes deletes the election at once, while sessions and connections last.
func lossOfNodes(t *testing.T) (connect string, lose func(client *framework.Client)) {
	t.Helper()
	return testenv.ConnectString(t), func(client *framework.Client) {
		ctx := testenv.Context(t)
		children, err := client.GetChildren().ForPath(ctx, electionPath)
		must(t, err)
		var deletes []builders.TransactionOperation
		for _, child := range children {
			deletes = append(deletes, client.TransactionOp().Delete().ForPath(electionPath+"/"+child))
		}
		deletes = append(deletes, client.TransactionOp().Delete().ForPath(electionPath))
		_, err = client.Transaction().ForOperations(ctx, deletes...)
		must(t, err)
	}
}

// In Java: TestLeaderLatch.testGetChildrenHitsNoNode (CURATOR-724).
func TestLatchesPathDeletedElectAgain(t *testing.T) {
	for what, loss := range map[string]loss{"server": lossOfServer, "nodes": lossOfNodes} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			connect, lose := loss(t)
			client := newClient(t, connect)
			first, events := startLatch(t, client, "first")
			events.want(true)
			behind, _ := startLatch(t, newClient(t, connect), "behind")
			awaitParticipants(t, first, 2)
			lose(client)
			events.want(false)
			latches := []*leader.LeaderLatch{first, behind}
			testenv.Eventually(t, func() bool { return leads(latches) > 0 }, "one leads again")
			awaitParticipants(t, first, 2)
			if n := leads(latches); n > 1 {
				t.Errorf("%d lead", n)
			}
		})
	}
}

// In Java: TestLeaderLatch.testWithCircuitBreaker. A flapping connection ends leadership as often as the breaker says.
func TestLatchCircuitBreakerFlappingConnectionLeadsAgain(t *testing.T) {
	t.Parallel()
	proxy, connect, _ := newProxy(t)
	client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second),
		framework.WithCircuitBreaker(retry.Forever(500*time.Millisecond)))
	states := make(chan framework.ConnectionState, 1000)
	ctx := testenv.Context(t)
	latch, events := startLatch(t, client, "me")
	l := events.want(true).Leadership
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) { states <- s })
	const flaps = 4
	for range flaps {
		proxy.Faults().CutAll()
		if _, err := client.CheckExists().ForPath(ctx, electionPath); err != nil {
			t.Error(err)
		}
	}
	events.want(false)
	again := events.want(true).Leadership
	if again.Path() != l.Path() {
		t.Errorf("leads with %s, led with %s", again.Path(), l.Path())
	}
	testenv.Eventually(t, latch.HasLeadership, "it leads when the connection no longer flaps")
	suspensions := 0
	for len(states) > 0 {
		if <-states == framework.Suspended {
			suspensions++
		}
	}
	if more := len(events.received); suspensions == 0 || more > 2*(suspensions-1) {
		t.Errorf("got %d changes more, the connection was suspended %d times", more, suspensions)
	}
}

// In Java: TestLeaderSelector.testKillSessionThenCloseShouldElectNewLeader,
// TestLeaderSelector.testKillServerThenCloseShouldElectNewLeader.
func TestSelectorsOfOneClientTakeTurnsAfterLoss(t *testing.T) {
	for what, loss := range map[string]loss{"session": lossOfSession, "server": lossOfServer} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			connect, lose := loss(t)
			client := newClient(t, connect)
			f := newTurns()
			a := startSelector(t, client, f, leader.WithAutoRequeue())
			b := startSelector(t, client, f, leader.WithAutoRequeue())
			receive(t, f.began, "one leads")
			lose(client)
			if cause := receive(t, f.ended, "the end of the turn"); !errors.Is(cause, leader.ErrLeadershipLost) {
				t.Errorf("cause %v", cause)
			}
			testenv.Eventually(t, func() bool { return a.HasLeadership() || b.HasLeadership() }, "one leads again")
			if a.HasLeadership() && b.HasLeadership() {
				t.Error("two lead")
			}
			leading, other := a, b
			if b.HasLeadership() {
				leading, other = b, a
			}
			must(t, leading.Close())
			testenv.Eventually(t, other.HasLeadership, "the other leads")
			if leading.HasLeadership() {
				t.Error("the closed one leads")
			}
		})
	}
}

// In Java: TestLeaderSelector.testLeaderNodeDeleteOnInterrupt.
func TestSelectorInterruptedWithoutConnectionLeavesNoNode(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	client := newClient(t, connect, steady,
		framework.WithConnectionStateErrorPolicy(framework.SessionErrorPolicy{}))
	f := newTurns()
	s := startSelector(t, client, f)
	receive(t, f.began, "it leads")
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	testenv.Eventually(t, func() bool { return !client.IsConnected() }, "the connection is lost")
	if !s.InterruptLeadership() {
		t.Error("not interrupted")
	}
	if cause := receive(t, f.ended, "it is over"); !errors.Is(cause, leader.ErrInterrupted) {
		t.Errorf("cause %v", cause)
	}
	restore()
	awaitNoNode(t, direct)
}

// Java cancels the election.
func TestSelectorWaitingOutageKeepsPlace(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	first, second, third := newTurns(), newTurns(), newTurns()
	s := startSelector(t, newClient(t, direct, steady), first)
	receive(t, first.began, "it leads")
	client := newClient(t, connect, steady)
	startSelector(t, client, second)
	awaitParticipants(t, s, 2)
	startSelector(t, newClient(t, direct, steady), third)
	awaitParticipants(t, s, 3)
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	testenv.Eventually(t, func() bool { return !client.IsConnected() }, "the connection is lost")
	first.stop <- nil
	awaitParticipants(t, s, 2)
	restore()
	receive(t, second.began, "it leads in its turn")
	if len(third.began) != 0 {
		t.Error("the third leads before its turn")
	}
}

// Listeners before it have been slow: by the time it gets the outage, and at once of its end, it has found that
// it is the first, and looks no more by itself.
func TestLatchLateOutageEventLeadsAgain(t *testing.T) {
	t.Parallel()
	proxy, connect, _ := newProxy(t)
	client := newClient(t, connect, steady)
	events := make(chan struct{})
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		if s == framework.Suspended {
			<-events
		}
	})
	latch, received := startLatch(t, client, "me")
	received.want(true)
	testenv.Eventually(t, func() bool { return answered(proxy, "getChildren2") >= 2 },
		"it has lined up, and looked once more")
	proxy.Faults().ResetTrace()
	proxy.Faults().CutAll()
	testenv.Eventually(t, func() bool { return answered(proxy, "getChildren2") >= 1 }, "it looks again")
	close(events)
	received.want(false)
	received.want(true)
	testenv.Eventually(t, latch.HasLeadership, "it leads")
}

// answered returns how many answers to an operation have passed.
func answered(proxy *curatortest.Proxy, op string) (n int) {
	for _, e := range proxy.Faults().Trace() {
		if e.Reply && e.Op == op {
			n++
		}
	}
	return n
}

// refused starts a client whose credentials no server takes, and returns when its unhandled errors are reported.
func refused(t *testing.T) (client *framework.Client, errs <-chan time.Time) {
	t.Helper()
	_, connect, _ := newProxy(t)
	client = newClient(t, connect, steady, framework.WithAuth("no-such-scheme", []byte("secret")))
	at := make(chan time.Time, 1000)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		if !strings.HasPrefix(e.Message, "leader ") {
			return // the connection has failed
		}
		select {
		case at <- time.Now():
		default:
		}
	})
	return client, at
}

func TestParticipantRefusedRetriesAfterPause(t *testing.T) {
	forEachCandidate(t, func(t *testing.T, start func(tb testing.TB, client *framework.Client) candidate) {
		t.Parallel()
		client, errs := refused(t)
		began := time.Now() // the first error may be reported late
		start(t, client)
		receive(t, errs, "an error")
		if pause := receive(t, errs, "another").Sub(began); pause < time.Second/2 {
			t.Errorf("it has tried again after %v", pause)
		}
	})
}
