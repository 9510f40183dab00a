package leader_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

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

func TestLatchNodesAreJavas(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t), framework.WithDefaultData([]byte("10.0.0.1")))
	ctx := testenv.Context(t)
	for id, want := range map[string]string{"me": "me", "": ""} {
		latch, _ := startLatch(t, client, id)
		l := await(t, latch)
		if name := regexp.MustCompile(`^/election/_c_[0-9a-f-]{36}-latch-\d{10}$`); !name.MatchString(l.Path()) {
			t.Errorf("path %s", l.Path())
		}
		data, err := client.GetData().ForPath(ctx, l.Path())
		if err != nil || string(data) != want || data == nil {
			t.Errorf("data %q, error %v", data, err)
		}
		must(t, latch.Close())
	}
}

func TestLatchStates(t *testing.T) {
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
func TestElectionWithoutParticipants(t *testing.T) {
	ctx := testenv.Context(t)
	latch := leader.NewLeaderLatch(newClient(t, testenv.ConnectString(t)), electionPath)
	if who, err := latch.Leader(ctx); err != nil || who != (leader.Participant{}) {
		t.Errorf("%+v, error %v", who, err)
	}
	if all, err := latch.Participants(ctx); err != nil || len(all) != 0 {
		t.Errorf("%v, error %v", all, err)
	}
}

// In Java: TestLeaderLatch.testCallbackDontNotify.
func TestLatchCloseModeDecidesNotification(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	for _, mode := range []leader.CloseMode{leader.Silent, leader.NotifyLeader} {
		latch, events := startLatch(t, client, "me", leader.WithCloseMode(mode))
		if ev := events.want(true); ev.Leadership != latch.Leadership() {
			t.Error("another leadership")
		}
		must(t, latch.Close())
		if mode == leader.NotifyLeader {
			events.want(false)
		}
		if n := len(events.received); n != 0 {
			t.Errorf("got %d more", n)
		}
	}
	latch, events := startLatch(t, client, "me", leader.WithCloseMode(leader.Silent))
	events.want(true)
	behind, eventsBehind := startLatch(t, client, "behind", leader.WithCloseMode(leader.NotifyLeader))
	awaitParticipants(t, latch, 2)
	must(t, behind.Close()) // which has never led
	must(t, latch.CloseWithMode(leader.NotifyLeader))
	events.want(false)
	if n := len(eventsBehind.received); n != 0 {
		t.Errorf("the one behind gets %d events", n)
	}
}

// In Java: TestLeaderLatch.testCallbackSanity, TestLeaderLatch.testCallbackNotifyLeader: each gives up its first
// leadership and is closed in its second.
func TestLatchListenersGetEachBeginningAndEndOnce(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect, steady)
	ctx := testenv.Context(t)
	var histories []*history
	var closed sync.WaitGroup
	modes := []leader.CloseMode{leader.Silent, leader.NotifyLeader, leader.Silent, leader.NotifyLeader}
	for i, mode := range modes {
		latch := leader.NewLeaderLatch(client, electionPath, leader.WithCloseMode(mode))
		h := &history{tb: t, name: fmt.Sprint(i), received: make(chan leader.LatchEvent, 1000)}
		times := 0
		closed.Add(1)
		latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
			h.received <- ev
			if !ev.IsLeader {
				return
			}
			if times++; times == 1 {
				if err := client.Delete().ForPath(ctx, ev.Leadership.Path()); err != nil {
					t.Error(err)
				}
				return
			}
			defer closed.Done()
			if err := latch.Close(); err != nil {
				t.Error(err)
			}
		})
		histories = append(histories, h)
		must(t, latch.Start())
		t.Cleanup(func() { must(t, latch.Close()) })
	}
	closed.Wait()
	awaitNoNode(t, connect)
	for i, h := range histories {
		h.want(true)
		h.want(false)
		h.want(true)
		if modes[i] == leader.NotifyLeader {
			h.want(false)
		}
		if n := len(h.received); n != 0 {
			t.Errorf("%s gets %d more", h.name, n)
		}
	}
}

// CURATOR-495: a listener that does not return.
func TestLatchListenerBlockedDelaysNoElection(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	latch := leader.NewLeaderLatch(client, electionPath, leader.WithID("blocked"))
	called, release := make(chan struct{}, 10), make(chan struct{})
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		if ev.IsLeader {
			called <- struct{}{}
			<-release
		}
	})
	must(t, latch.Start())
	t.Cleanup(func() { must(t, latch.Close()) })
	<-called
	l := await(t, latch)
	_, events := startLatch(t, newClient(t, connect), "next")
	awaitParticipants(t, latch, 2)
	must(t, testenv.Server(t).ExpireSession(client.SessionID()))
	<-l.Context().Done()
	events.want(true)
	awaitParticipants(t, latch, 2) // it takes part again
	if latch.HasLeadership() {
		t.Error("two lead")
	}
	close(release)
}

func TestLatchListenerMayClose(t *testing.T) {
	connect := testenv.ConnectString(t)
	latch := leader.NewLeaderLatch(newClient(t, connect), electionPath)
	closed := make(chan struct{})
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		if ev.IsLeader {
			must(t, latch.Close())
			close(closed)
		}
	})
	must(t, latch.Start())
	<-closed
	awaitNoNode(t, connect)
}

// In Java: TestLeaderLatch.testSessionInterruptionDoNotCauseBrainSplit (CURATOR-696). CURATOR-537: a leadership that is
// over keeps its path and token while the latch lines up anew.
func TestLatchSessionExpiredLosesLeadershipAndQueuesAgain(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	first, events := startLatch(t, client, "first")
	l := events.want(true).Leadership
	second, eventsOfSecond := startLatch(t, newClient(t, connect), "second")
	awaitParticipants(t, first, 2)
	must(t, testenv.Server(t).ExpireSession(client.SessionID()))
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
func TestLatchErrorPolicies(t *testing.T) {
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

// In Java: TestLeaderLatch.testWatchedNodeDeletedOnReconnect (CURATOR-644): a waiter lists again and keeps its place.
func TestWaitingLatchOutageKeepsPlace(t *testing.T) {
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

// In Java: TestLeaderLatch.testCorrectWatching: each watches only the one before it, and the leader its own node.
func TestLatchWatchesOneNode(t *testing.T) {
	server := curatortest.NewServerT(t)
	var latches []*leader.LeaderLatch
	for i := range 5 {
		latch, _ := startLatch(t, newClient(t, server.ConnectString()), fmt.Sprint(i))
		latches = append(latches, latch)
		awaitParticipants(t, latches[0], i+1)
	}
	server.EventuallyT(t, "each node but the last is watched once, the leader's by itself too", func() bool {
		children := server.Children(electionPath)
		total := 0
		for _, child := range children {
			total += server.Watches(electionPath + "/" + child)
		}
		return len(children) == 5 && total == 5
	})
	for _, latch := range latches {
		must(t, latch.Close())
	}
	server.EventuallyT(t, "no watch is left", func() bool {
		word, err := server.FourLetterWord(t.Context(), "wchs")
		return err == nil && word == "0 connections watching 0 paths\nTotal watches:0\n"
	})
}

// The next leader waits for the deletion: nothing travels beside it.
func TestLatchCloseSendsOnlyDelete(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	latch, _ := startLatch(t, newClient(t, connect, framework.WithSessionTimeout(30*time.Second)), "a")
	await(t, latch)
	awaitWatched(t, proxy)
	proxy.Faults().ResetTrace()
	must(t, latch.Close())
	awaitNoNode(t, direct)
	var ops []string
	for _, e := range proxy.Faults().Trace() {
		if !e.Reply {
			ops = append(ops, e.Op)
		}
	}
	if diff := cmp.Diff([]string{"delete"}, ops); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestLatchCloseNodeStaysRemovesWatch(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	latch, _ := startLatch(t, newClient(t, connect, framework.WithSessionTimeout(30*time.Second)), "a")
	await(t, latch)
	awaitWatched(t, proxy)
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Count: 1, Action: curatortest.ReplyError,
		Err: zk.ErrNoAuth,
	})
	removal := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"removeWatches"}, Count: 1,
		Action: curatortest.HoldReply,
	})
	must(t, latch.Close())
	must(t, removal.Wait(testenv.Context(t)))
	removal.Release()
}

// awaitWatched waits until a leader has set the watch on its node, and looked once more.
func awaitWatched(tb testing.TB, proxy *curatortest.Proxy) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		trace := proxy.Faults().Trace()
		watched := slices.IndexFunc(trace, func(e curatortest.TraceEntry) bool { return e.Op == "getData" && e.Reply })
		return watched >= 0 && slices.ContainsFunc(trace[watched:], func(e curatortest.TraceEntry) bool {
			return e.Op == "getChildren2" && e.Reply
		})
	}, "the watch of the leader")
}

// No leadership begins once the latch is closed.
func TestLatchClosedNotifiesNoLeadership(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t), steady)
	for range 300 {
		latch := leader.NewLeaderLatch(client, electionPath, leader.WithCloseMode(leader.NotifyLeader))
		events := make(chan bool, 10)
		latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
			events <- ev.IsLeader
			if ev.IsLeader {
				must(t, latch.Close())
			}
		})
		must(t, latch.Start())
		if !receive(t, events, "it leads") || receive(t, events, "it leads no longer") {
			t.Fatal("got a beginning and an end, but not in turn")
		}
		select {
		case is := <-events:
			t.Fatalf("a closed latch leads: %t", is)
		default:
		}
	}
}

func TestAwaitClientClosedFails(t *testing.T) {
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

// A test that fails in a listener ends its goroutine.
func TestLatchListenerGoexitIsCalledAgain(t *testing.T) {
	t.Parallel()
	_, connect, _ := newProxy(t)
	latch := leader.NewLeaderLatch(newClient(t, connect), electionPath, leader.WithCloseMode(leader.NotifyLeader))
	received := make(chan bool, 10)
	latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
		received <- ev.IsLeader
		runtime.Goexit()
	})
	must(t, latch.Start())
	if !receive(t, received, "it leads") {
		t.Error("got an end first")
	}
	must(t, latch.Close())
	if receive(t, received, "it does not lead") {
		t.Error("got a beginning twice")
	}
}
