package leader_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// In Java: TestLeaderLatch.testBasic.
func TestLatchesLeadInOrder(t *testing.T) {
	connect := testenv.ConnectString(t)
	var latches []*leader.LeaderLatch
	var token int64
	for i := range 4 {
		latch, _ := startLatch(t, newClient(t, connect), fmt.Sprint(i))
		latches = append(latches, latch)
		awaitParticipants(t, latches[0], i+1)
	}
	ctx := testenv.Context(t)
	for i, latch := range latches {
		l := await(t, latch)
		if l.Token() <= token {
			t.Errorf("token %d after %d", l.Token(), token)
		}
		token = l.Token()
		who, err := latch.Leader(ctx)
		if want := (leader.Participant{ID: fmt.Sprint(i), IsLeader: true}); err != nil || who != want {
			t.Errorf("%+v leads, error %v", who, err)
		}
		for _, other := range latches[i+1:] {
			if other.HasLeadership() || other.Leadership() != nil {
				t.Errorf("%s leads too", other.ID())
			}
		}
		must(t, latch.Close())
		if cause := context.Cause(l.Context()); !errors.Is(cause, leader.ErrClosed) || latch.HasLeadership() {
			t.Errorf("cause %v", cause)
		}
	}
	awaitNoNode(t, connect)
}

// In Java: TestLeaderLatch.testWaiting, TestLeaderLatch.testBasicAlt.
func TestLatchesStartedTogetherHaveOneLeader(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect, steady)
	ctx := testenv.Context(t)
	for range 3 {
		var leaders atomic.Int32
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				latch := leader.NewLeaderLatch(client, electionPath)
				if err := latch.Start(); err != nil {
					t.Error(err)
					return
				}
				l, err := latch.Await(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if n := leaders.Add(1); n != 1 || l.Context().Err() != nil {
					t.Errorf("%d lead", n)
				}
				leaders.Add(-1)
				if err := latch.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		awaitNoNode(t, connect)
	}
}

// In Java: TestLeaderLatch.testCorrectWatching.
func TestLatchClosedInMiddleKeepsLeader(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect, steady)
	var latches []*leader.LeaderLatch
	for i := range 4 {
		latch, _ := startLatch(t, client, fmt.Sprint(i))
		latches = append(latches, latch)
		awaitParticipants(t, latches[0], i+1)
	}
	first := await(t, latches[0])
	must(t, latches[2].Close())
	awaitParticipants(t, latches[0], 3)
	for _, i := range []int{1, 3} {
		if latches[i].HasLeadership() {
			t.Errorf("%d leads", i)
		}
	}
	if latches[0].Leadership() != first {
		t.Error("the leader has changed")
	}
	must(t, latches[0].Close())
	await(t, latches[1])
	if latches[3].HasLeadership() {
		t.Error("the last leads before its turn")
	}
	must(t, latches[1].Close())
	await(t, latches[3])
}

func TestLatchNodesHaveNamesAndDataOfJava(t *testing.T) {
	for name, id := range map[string]string{"with an id": "me", "without": ""} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, testenv.ConnectString(t), framework.WithDefaultData([]byte("10.0.0.1")))
			latch, _ := startLatch(t, client, id)
			l := await(t, latch)
			if name := regexp.MustCompile(`^/election/_c_[0-9a-f-]{36}-latch-\d{10}$`); !name.MatchString(l.Path()) {
				t.Errorf("path %s", l.Path())
			}
			data, err := client.GetData().ForPath(testenv.Context(t), l.Path())
			if err != nil || string(data) != id || data == nil {
				t.Errorf("data %q, error %v", data, err)
			}
		})
	}
}

func TestLatchLifeCycle(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	latch := leader.NewLeaderLatch(client, electionPath)
	if latch.State() != leader.Latent || latch.HasLeadership() {
		t.Error("it has not been started")
	}
	must(t, latch.Start())
	if err := latch.Start(); !errors.Is(err, leader.ErrStarted) || latch.State() != leader.Started {
		t.Errorf("got %v", err)
	}
	await(t, latch)
	must(t, latch.Close())
	must(t, latch.Close())
	if err := latch.Start(); !errors.Is(err, leader.ErrClosed) || latch.State() != leader.Closed {
		t.Errorf("got %v", err)
	}
	if _, err := latch.Await(ctx); !errors.Is(err, leader.ErrClosed) {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := leader.NewLeaderLatch(client, electionPath).Await(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	never := leader.NewLeaderLatch(client, electionPath)
	must(t, never.Close())
	if err := leader.NewLeaderLatch(client, "no/slash").Start(); err == nil { // In Java: TestLeaderLatch.testRelativePath
		t.Error("a bad path is accepted")
	}
}

// In Java: TestLeaderLatch.testUncreatedPathGetLeader (CURATOR-436).
func TestLatchWithoutParticipantsHasNoLeader(t *testing.T) {
	ctx := testenv.Context(t)
	latch := leader.NewLeaderLatch(newClient(t, testenv.ConnectString(t)), electionPath)
	if who, err := latch.Leader(ctx); err != nil || who != (leader.Participant{}) {
		t.Errorf("%+v, error %v", who, err)
	}
	if all, err := latch.Participants(ctx); err != nil || len(all) != 0 {
		t.Errorf("%v, error %v", all, err)
	}
}

// In Java: TestLeaderLatch.testSessionInterruptionDoNotCauseBrainSplit (CURATOR-696). CURATOR-537: a leadership that is
// over keeps its path and token while the latch lines up anew.
func TestLatchSessionExpiredLosesLeadershipAndQueuesAgain(t *testing.T) {
	connect := testenv.ConnectString(t)
	proxy, proxied := proxyBeside(t, connect)
	client := newClient(t, proxied)
	first, events := startLatch(t, client, "first")
	l := events.want(true).Leadership
	second, eventsOfSecond := startLatch(t, newClient(t, connect), "second")
	awaitParticipants(t, first, 2)
	restore := proxy.Faults().RefuseConnects() // it does not take the session back before, and lead again with its node
	must(t, testenv.Server(t).ExpireSession(client.SessionID()))
	restore()
	<-l.Context().Done()
	if cause := context.Cause(l.Context()); !errors.Is(cause, leader.ErrLeadershipLost) {
		t.Errorf("cause %v", cause)
	}
	events.want(false)
	next := eventsOfSecond.want(true).Leadership
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	awaitParticipants(t, first, 2)
	if first.HasLeadership() {
		t.Error("two lead")
	}
	must(t, second.Close())
	if again := events.want(true).Leadership; again.Path() == l.Path() {
		t.Error("it leads with the node of an earlier session")
	}
}

// In Java: TestLeaderLatch.testSessionErrorPolicy, TestLeaderLatch.testErrorPolicies. With the standard policy a lost
// connection ends leadership at once; the same node leads again. With the policy of the session no event is sent.
func TestLatchErrorPolicyDecidesLeadershipInOutage(t *testing.T) {
	for name, policy := range map[string]framework.ErrorPolicy{
		"standard": framework.StandardErrorPolicy{}, "session": framework.SessionErrorPolicy{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, connect, _ := newProxy(t)
			client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second),
				framework.WithConnectionStateErrorPolicy(policy))
			latch, events := startLatch(t, client, "me")
			l := events.want(true).Leadership
			restore := proxy.Faults().RefuseConnects()
			proxy.Faults().CutAll()
			if name == "standard" {
				<-l.Context().Done()
				if latch.HasLeadership() {
					t.Error("it leads without a connection")
				}
				events.want(false)
				restore()
				if again := events.want(true).Leadership; again == l || again.Path() != l.Path() || again.Token() != l.Token() {
					t.Errorf("leads with %s, led with %s", again.Path(), l.Path())
				}
				return
			}
			testenv.Eventually(t, func() bool { return !client.IsConnected() }, "the connection is lost")
			restore()
			must(t, client.BlockUntilConnected(testenv.Context(t)))
			if latch.Leadership() != l || len(events.received) != 0 {
				t.Error("leadership has changed")
			}
		})
	}
}

// In Java: TestLeaderLatch.testWatchedNodeDeletedOnReconnect (CURATOR-644): a waiter lists again and keeps its place.
func TestLatchWaitingOutageKeepsPlace(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	first, _ := startLatch(t, newClient(t, direct), "first")
	await(t, first)
	waiting, events := startLatch(t, newClient(t, connect, framework.WithSessionTimeout(10*time.Second)), "waiting")
	awaitParticipants(t, first, 2)
	third, _ := startLatch(t, newClient(t, direct), "third")
	awaitParticipants(t, first, 3)
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	must(t, first.Close())
	restore()
	events.want(true)
	who, err := third.Leader(testenv.Context(t))
	if err != nil || who.ID != "waiting" || !waiting.HasLeadership() {
		t.Errorf("%+v leads, error %v", who, err)
	}
}

// In Java: TestLeaderLatch.testNoServerAtStart (CURATOR-110),
// TestLeaderLatch.testProperCloseWithoutConnectionEstablished.
func TestLatchStartedWithoutConnectionLeadsLater(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	restore := proxy.Faults().RefuseConnects()
	never, _ := startLatch(t, newClient(t, connect), "never")
	latch, events := startLatch(t, newClient(t, connect), "late")
	must(t, never.Close())
	restore()
	events.want(true)
	must(t, latch.Close())
	awaitNoNode(t, direct)
}

// In Java: TestLeaderLatch.testResetRace: there is one node, though the connection is cut before or after a request.
func TestLatchLostRepliesLeaveNoNode(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
		proxy, connect, direct := newProxy(t)
		client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second))
		must(t, client.BlockUntilConnected(testenv.Context(t)))
		injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
		latch, _ := startLatch(t, client, "me")
		await(t, latch)
		awaitParticipants(t, latch, 1)
		must(t, latch.Close())
		awaitNoNode(t, direct)
		return injection.Hits() > 0
	})
}

func TestLatchAwaitClientClosedFails(t *testing.T) {
	t.Parallel()
	_, connect, _ := newProxy(t)
	client := newClient(t, connect)
	latch, events := startLatch(t, client, "me")
	events.want(true)
	must(t, client.Close())
	if _, err := latch.Await(testenv.Context(t)); !errors.Is(err, framework.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestLatchNotStartedClosedTwice(t *testing.T) {
	latch := leader.NewLeaderLatch(newClient(t, testenv.ConnectString(t)), electionPath)
	closed := make(chan error, 2)
	go func() {
		closed <- latch.Close()
		closed <- latch.Close()
	}()
	for range 2 {
		must(t, receive(t, closed, "it is closed"))
	}
	if _, err := latch.Await(testenv.Context(t)); !errors.Is(err, leader.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
