package leader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// In Java: TestLeaderLatch.testBasic, testWaiting.
func TestTheFirstLeadsAndTheOthersFollowInTheirOrder(t *testing.T) {
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

func TestNodesOfALatchAreThoseOfJava(t *testing.T) {
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

func TestLifeOfALatch(t *testing.T) {
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
	if err := leader.NewLeaderLatch(client, "no/slash").Start(); err == nil { // In Java: testRelativePath
		t.Error("a bad path is accepted")
	}
}

// In Java: testUncreatedPathGetLeader (CURATOR-436), testGetChildrenHitsNoNode.
func TestElectionOfNobody(t *testing.T) {
	ctx := testenv.Context(t)
	latch := leader.NewLeaderLatch(newClient(t, testenv.ConnectString(t)), electionPath)
	if who, err := latch.Leader(ctx); err != nil || who != (leader.Participant{}) {
		t.Errorf("%+v, error %v", who, err)
	}
	if all, err := latch.Participants(ctx); err != nil || len(all) != 0 {
		t.Errorf("%v, error %v", all, err)
	}
}

// In Java: testCallbackNotifyLeader, testCallbackDontNotify.
func TestCloseTellsTheListenersOnlyIfAsked(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	for _, mode := range []leader.CloseMode{leader.Silent, leader.NotifyLeader} {
		latch, told := startLatch(t, client, "me", leader.WithCloseMode(mode))
		if ev := told.want(true); ev.Leadership != latch.Leadership() {
			t.Error("another leadership")
		}
		must(t, latch.Close())
		if mode == leader.NotifyLeader {
			told.want(false)
		}
		if n := len(told.heard); n != 0 {
			t.Errorf("told %d more", n)
		}
	}
	latch, told := startLatch(t, client, "me", leader.WithCloseMode(leader.Silent))
	told.want(true)
	must(t, latch.CloseWithMode(leader.NotifyLeader))
	told.want(false)
}

func TestListenerMayCloseTheLatch(t *testing.T) {
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

// In Java: testLostConnection, testSessionInterruptionDoNotCauseBrainSplit.
func TestLatchOfALostSessionGivesWayAndLinesUpAnew(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	first, told := startLatch(t, client, "first")
	l := told.want(true).Leadership
	second, toldToo := startLatch(t, newClient(t, connect), "second")
	awaitParticipants(t, first, 2)
	must(t, testenv.Server(t).ExpireSession(client.SessionID()))
	<-l.Context().Done()
	if cause := context.Cause(l.Context()); !errors.Is(cause, leader.ErrLeadershipLost) {
		t.Errorf("cause %v", cause)
	}
	told.want(false)
	next := toldToo.want(true).Leadership
	if next.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.Token(), l.Token())
	}
	awaitParticipants(t, first, 2)
	if first.HasLeadership() {
		t.Error("two lead")
	}
	must(t, second.Close())
	if again := told.want(true).Leadership; again.Path() == l.Path() {
		t.Error("it leads with the node of an earlier session")
	}
}

// In Java: testErrorPolicies. With the standard policy a lost connection ends leadership at once; the same node leads
// again. With the policy of the session nobody notices.
func TestErrorPoliciesOfALatch(t *testing.T) {
	for name, policy := range map[string]framework.ErrorPolicy{
		"standard": framework.StandardErrorPolicy{}, "session": framework.SessionErrorPolicy{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, connect, _ := newProxy(t)
			client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second),
				framework.WithConnectionStateErrorPolicy(policy))
			latch, told := startLatch(t, client, "me")
			l := told.want(true).Leadership
			restore := proxy.Faults().RefuseConnects()
			proxy.Faults().CutAll()
			if name == "standard" {
				<-l.Context().Done()
				if latch.HasLeadership() {
					t.Error("it leads without a connection")
				}
				told.want(false)
				restore()
				if again := told.want(true).Leadership; again == l || again.Path() != l.Path() || again.Token() != l.Token() {
					t.Errorf("leads with %s, led with %s", again.Path(), l.Path())
				}
				return
			}
			testenv.Eventually(t, func() bool { return !client.IsConnected() }, "the connection is lost")
			restore()
			must(t, client.BlockUntilConnected(testenv.Context(t)))
			if latch.Leadership() != l || len(told.heard) != 0 {
				t.Error("leadership has changed")
			}
		})
	}
}

// In Java: testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved and others about nodes that vanish.
func TestLeaderWhoseNodeIsDeletedGivesWay(t *testing.T) {
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	first, told := startLatch(t, client, "first")
	l := told.want(true).Leadership
	_, toldToo := startLatch(t, newClient(t, connect), "second")
	awaitParticipants(t, first, 2)
	must(t, client.Delete().ForPath(testenv.Context(t), l.Path()))
	told.want(false)
	toldToo.want(true)
	awaitParticipants(t, first, 2) // it has lined up anew
}

// In Java: testWatchedNodeDeletedOnReconnect (CURATOR-644): who waits looks again, and keeps its place.
func TestWaitingLatchKeepsItsPlaceThroughAnOutage(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	first, _ := startLatch(t, newClient(t, direct), "first")
	await(t, first)
	waiting, told := startLatch(t, newClient(t, connect, framework.WithSessionTimeout(10*time.Second)), "waiting")
	awaitParticipants(t, first, 2)
	third, _ := startLatch(t, newClient(t, direct), "third")
	awaitParticipants(t, first, 3)
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	must(t, first.Close())
	restore()
	told.want(true)
	who, err := third.Leader(testenv.Context(t))
	if err != nil || who.ID != "waiting" || !waiting.HasLeadership() {
		t.Errorf("%+v leads, error %v", who, err)
	}
}

// In Java: testNoServerAtStart, testProperCloseWithoutConnectionEstablished.
func TestLatchThatIsStartedWithoutAConnection(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	restore := proxy.Faults().RefuseConnects()
	never, _ := startLatch(t, newClient(t, connect), "never")
	latch, told := startLatch(t, newClient(t, connect), "late")
	must(t, never.Close())
	restore()
	told.want(true)
	must(t, latch.Close())
	awaitNoNode(t, direct)
}

// In Java: testCreateDeleteRace, testResetRace: the connection is cut before and after each request in turn.
func TestLatchWithLostRepliesLeavesNoNode(t *testing.T) {
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			for k, hit := 0, true; hit; k++ {
				proxy, connect, direct := newProxy(t)
				client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second))
				must(t, client.BlockUntilConnected(testenv.Context(t)))
				injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action})
				latch, _ := startLatch(t, client, "me")
				await(t, latch)
				must(t, latch.Close())
				awaitNoNode(t, direct)
				hit = injection.Hits() > 0
			}
		})
	}
}

// In Java: testCorrectWatching: each watches only the one before it, and the leader its own node.
func TestEachLatchWatchesOneNode(t *testing.T) {
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

func TestObserveLatch(t *testing.T) {
	connect := testenv.ConnectString(t)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	seen := make(chan string)
	done := make(chan error, 1)
	observer := newClient(t, connect)
	go func() {
		for who, err := range leader.ObserveLatch(ctx, observer, electionPath) {
			if err != nil {
				done <- err
				return
			}
			seen <- who.ID
		}
	}()
	var got []string
	next := func() { got = append(got, <-seen) }
	next()
	first, _ := startLatch(t, newClient(t, connect), "first")
	next()
	second, _ := startLatch(t, newClient(t, connect), "second")
	awaitParticipants(t, first, 2)
	must(t, first.Close())
	next()
	must(t, second.Close())
	next()
	if diff := cmp.Diff([]string{"", "first", "second", ""}, got); diff != "" {
		t.Error(diff)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for range leader.ObserveSelector(t.Context(), observer, electionPath) {
		break // who has seen enough
	}
}

// F6: contenders, and leaders that are killed in every way. There is never more than one leader whose session lives, and
// there is always a next one.
func TestLeadersThatAreKilled(t *testing.T) {
	kills, contenders := 12, 4
	if testenv.Real() {
		kills, contenders = 40, 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	chroot := testenv.Chroot(t)
	type contender struct {
		*leader.LeaderLatch
		client *framework.Client
		proxy  *curatortest.Proxy
	}
	var all []contender
	var mu sync.Mutex
	tokens := map[int64]string{}
	for i := range contenders {
		proxy, err := curatortest.NewProxy(testenv.Addr(t))
		must(t, err)
		t.Cleanup(func() { must(t, proxy.Close()) })
		client := newClient(t, proxy.Addr()+chroot)
		id := fmt.Sprint(i)
		latch, _ := startLatch(t, client, id)
		latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
			if !ev.IsLeader {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if owner, ok := tokens[ev.Leadership.Token()]; ok && owner != id {
				t.Errorf("%s leads with the token of %s", id, owner)
			}
			tokens[ev.Leadership.Token()] = id
		})
		all = append(all, contender{latch, client, proxy})
	}
	lead := func() (who contender) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			leaders := 0
			for _, c := range all {
				if c.HasLeadership() {
					leaders++
					who = c
				}
			}
			if leaders > 1 {
				t.Errorf("seed %d: %d leaders", seed, leaders)
			}
			return leaders == 1
		}, "somebody leads")
		return who
	}
	for range kills {
		c := lead()
		before := c.Leadership()
		switch random.IntN(3) {
		case 0:
			if err := testenv.Server(t).ExpireSession(c.client.SessionID()); err != nil && !errors.Is(err, zk.ErrSessionExpired) {
				t.Fatal(err)
			}
		case 1:
			c.proxy.Faults().CutAll()
		default:
			restore := c.proxy.Faults().BlackHole(curatortest.Both)
			if before != nil {
				<-before.Context().Done()
			}
			restore()
		}
	}
	lead()
	for _, c := range all {
		must(t, c.Close())
	}
	awaitNoNode(t, testenv.Addr(t)+chroot)
}
