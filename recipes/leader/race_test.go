package leader_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// steady keeps a client from being suspended, and from losing its nodes, on a slow machine.
var steady = framework.WithSessionTimeout(30 * time.Second)

// proxyBeside returns another proxy to the server, and a connect string through it with the chroot of direct.
func proxyBeside(tb testing.TB, direct string) (proxy *curatortest.Proxy, connect string) {
	tb.Helper()
	proxy = curatortest.NewProxyT(tb, testenv.Addr(tb))
	_, chroot, _ := strings.Cut(direct, "/")
	return proxy, proxy.Addr() + "/" + chroot
}

// nodeOf returns the path of a participant's node, and of nothing if it does not take part.
func nodeOf(tb testing.TB, client *framework.Client, id string) string {
	tb.Helper()
	ctx := testenv.Context(tb)
	children, err := client.GetChildren().ForPath(ctx, electionPath)
	must(tb, err)
	for _, child := range children {
		path := electionPath + "/" + child
		if data, err := client.GetData().ForPath(ctx, path); err == nil && string(data) == id {
			return path
		}
	}
	return ""
}

// In Java: TestLeaderLatch.testLeadershipElectionWhenNodeDisappearsAfterChildrenAreRetrieved (CURATOR-644,
// CURATOR-645).
func TestLatchPredecessorGoneBeforeWatchKeepsPlace(t *testing.T) {
	proxy, connect, direct := newProxy(t)
	observer := newClient(t, direct, steady)
	first, _ := startLatch(t, observer, "first")
	await(t, first)
	watching := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest})
	_, events := startLatch(t, newClient(t, connect, steady), "candidate")
	must(t, watching.Wait(testenv.Context(t)))
	third, _ := startLatch(t, newClient(t, direct, steady), "third")
	awaitParticipants(t, first, 3)
	node := nodeOf(t, observer, "candidate")
	must(t, first.Close())
	awaitParticipants(t, first, 2)
	watching.Release()
	if l := events.want(true).Leadership; l.Path() != node {
		t.Errorf("leads with %s, it stood in line with %s", l.Path(), node)
	}
	if third.HasLeadership() {
		t.Error("two lead")
	}
}

// In Java: TestLeaderLatch.testCreateDeleteRace (CURATOR-18).
func TestParticipantClosedWhileQueuingLeavesNoNode(t *testing.T) {
	forEachCandidate(t, func(t *testing.T, start func(tb testing.TB, client *framework.Client) candidate) {
		t.Helper()
		proxy, connect, direct := newProxy(t)
		client := newClient(t, connect, steady)
		must(t, client.CreateContainers(testenv.Context(t), electionPath))
		creating := proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply,
		})
		c := start(t, client)
		must(t, creating.Wait(testenv.Context(t)))
		must(t, c.close())
		creating.Release()
		awaitNoNode(t, direct)
	})
}

// In Java: TestLeaderLatch.testResettingOfLeadershipAfterConcurrentLeadershipChange (CURATOR-653): each of two latches
// loses its node while the other has not received yet that it stands in line again.
func TestLatchesNodesDeletedWhileOtherQueuesLeadAgain(t *testing.T) {
	ctx := testenv.Context(t)
	proxyA, connectA, direct := newProxy(t)
	proxyB, connectB := proxyBeside(t, direct)
	observer := newClient(t, direct, steady)
	a, eventsOfA := startLatch(t, newClient(t, connectA, steady), "a")
	led := eventsOfA.want(true).Leadership
	b, eventsOfB := startLatch(t, newClient(t, connectB, steady), "b")
	awaitParticipants(t, a, 2)
	hold := func(proxy *curatortest.Proxy) *curatortest.Injection {
		return proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
	}

	lining := hold(proxyA)
	must(t, observer.Delete().ForPath(ctx, led.Path()))
	eventsOfA.want(false)
	led = eventsOfB.want(true).Leadership
	must(t, lining.Wait(ctx)) // the node of a is behind that of b

	liningToo := hold(proxyB)
	must(t, observer.Delete().ForPath(ctx, led.Path()))
	eventsOfB.want(false)
	must(t, liningToo.Wait(ctx)) // and that of b behind that of a
	if a.HasLeadership() || b.HasLeadership() {
		t.Error("a participant leads before it knows its node")
	}

	lining.Release()
	eventsOfA.want(true)
	liningToo.Release()
	awaitParticipants(t, a, 2)
	must(t, a.Close())
	eventsOfB.want(true)
	if len(eventsOfA.received) != 0 || len(eventsOfB.received) != 0 {
		t.Errorf("a gets %d changes more, b %d", len(eventsOfA.received), len(eventsOfB.received))
	}
}

// CURATOR-358: the leader leaves when it has been found, and before its id is read.
func TestParticipantLeavingDuringReadIsLeftOut(t *testing.T) {
	ctx := testenv.Context(t)
	proxy, connect, direct := newProxy(t)
	client := newClient(t, direct, steady)
	observer := leader.NewLeaderLatch(newClient(t, connect, steady), electionPath)
	want := leader.Participant{ID: "last", IsLeader: true}
	read := map[string]func() (any, error){
		"the leader":   func() (any, error) { return observer.Leader(ctx) },
		"participants": func() (any, error) { return observer.Participants(ctx) },
	}
	expected := map[string]any{"the leader": want, "participants": []leader.Participant{want}}
	last, _ := startLatch(t, client, "other")
	for what := range read {
		first := last
		last, _ = startLatch(t, client, "last")
		awaitParticipants(t, last, 2)
		reading := proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest,
		})
		var got any
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { got, err = read[what]() })
		must(t, reading.Wait(ctx))
		must(t, first.Close())
		awaitParticipants(t, last, 1)
		reading.Release()
		wg.Wait()
		must(t, err)
		if diff := cmp.Diff(expected[what], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// gate delays every grant of a client until it is open.
type gate struct {
	once          sync.Once
	armed         atomic.Bool
	reached, open chan struct{}
}

// newGated returns a connected client and its gate.
func newGated(t *testing.T, connect string) (*framework.Client, *gate) {
	t.Helper()
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	client := newClient(t, connect, steady, hook.BeforeSession(g.await).(framework.Option),
		framework.WithoutEnsembleTracker()) // it takes the session too, before the states are published
	must(t, client.BlockUntilConnected(testenv.Context(t)))
	g.armed.Store(true)
	return client, g
}

func (g *gate) await(any) {
	if g.armed.Load() {
		g.once.Do(func() { close(g.reached) })
		<-g.open
	}
}

// In Java: TestLeaderSelector.testRaceAtStateChanged: the connection is lost when the line has shown that it is our
// turn, and before it begins. Java gives it up.
func TestSelectorTurnBeginsAfterOutage(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	client, gate := newGated(t, connect)
	connected := make(chan bool, 1)
	s := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
		connected <- client.IsConnected()
		return ctx.Err()
	})
	must(t, s.Start())
	t.Cleanup(func() { must(t, s.Close()) })
	suspended := make(chan struct{})
	client.AddConnectionStateListener(func(_ context.Context, state framework.ConnectionState) {
		if state == framework.Suspended { // which the selector has received before
			close(suspended)
		}
	})
	receive(t, gate.reached, "it is its turn")
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	receive(t, suspended, "the connection is lost")
	close(gate.open)
	if s.HasLeadership() {
		t.Error("it leads without a connection")
	}
	restore()
	if !receive(t, connected, "it leads") {
		t.Error("its turn has begun without a connection")
	}
}

// The session ends when it is our turn, and before that begins.
func TestSelectorSessionExpiredBeforeTurnQueuesAgain(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	client, gate := newGated(t, connect)
	gate.armed.Store(false)
	session := client.Session()
	gate.armed.Store(true)
	f := newTurns()
	s := leader.NewLeaderSelector(client, electionPath, f.take)
	must(t, s.Start())
	t.Cleanup(func() { must(t, s.Close()) })
	receive(t, gate.reached, "it is its turn")
	restore := proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	must(t, testenv.Server(t).ExpireSession(session.ID()))
	restore()
	receive(t, session.Context().Done(), "the session is over")
	close(gate.open)
	if turn := receive(t, f.began, "it leads"); turn.Err() != nil {
		t.Errorf("it begins with the end: %v", context.Cause(turn))
	}
}

// expireBefore has the session of a client end, and have a successor, before it is asked for the nth time.
func expireBefore(tb testing.TB, n *atomic.Int64) framework.Option {
	tb.Helper()
	return hook.BeforeSession(func(of any) {
		if n.Add(-1) != 0 {
			return
		}
		client := of.(*framework.Client)
		old := client.Session()
		must(tb, testenv.Server(tb).ExpireSession(old.ID()))
		testenv.Eventually(tb, func() bool {
			s := client.Session()
			return s != nil && s != old && s.Context().Err() == nil
		}, "the next session")
	}).(framework.Option)
}

func TestSelectorNodeOfEarlierSessionDoesNotLead(t *testing.T) {
	for n := range int64(6) {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			_, connect, direct := newProxy(t)
			var left atomic.Int64
			client := newClient(t, connect, steady, expireBefore(t, &left))
			must(t, client.BlockUntilConnected(testenv.Context(t)))
			left.Store(n + 1)
			began := make(chan *leader.Leadership, 10)
			s := leader.NewLeaderSelector(client, electionPath, func(ctx context.Context) error {
				began <- leader.LeadershipOf(ctx)
				<-ctx.Done()
				return ctx.Err()
			}, leader.WithAutoRequeue(), leader.WithOnError(func(context.Context, error) {}))
			must(t, s.Start())
			other := newClient(t, direct, steady)
			for {
				l := receive(t, began, "it leads")
				stat, err := other.CheckExists().ForPath(testenv.Context(t), l.Path())
				must(t, err)
				if stat != nil {
					break
				}
				select {
				case <-l.Context().Done(): // its session ended behind the grant
				case <-testenv.Context(t).Done():
					t.Fatal("it leads without a node")
				}
			}
			must(t, s.Close())
		})
	}
}
