package leader_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/leader"
)

// kind is how one takes part in an election, and how one watches it.
type kind struct {
	observe func(ctx context.Context, client *framework.Client, path string) iter.Seq2[leader.Participant, error]
	start   func(t *testing.T, client *framework.Client, id string) (leave func() error)
}

// ofEachKind runs a test for latches and for selectors.
func ofEachKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for name, k := range map[string]kind{
		"latches": {leader.ObserveLatch, func(t *testing.T, client *framework.Client, id string) func() error {
			t.Helper()
			latch, _ := startLatch(t, client, id)
			return latch.Close
		}},
		"selectors": {leader.ObserveSelector, func(t *testing.T, client *framework.Client, id string) func() error {
			t.Helper()
			return startSelector(t, client, newTurns(), leader.WithID(id)).Close
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// observation holds the results of an observer of an election.
type observation struct {
	tb     testing.TB
	seen   chan leader.Participant
	ended  chan error
	cancel context.CancelFunc
}

func (k kind) watch(tb testing.TB, client *framework.Client) *observation {
	tb.Helper()
	ctx, cancel := context.WithCancel(testenv.Context(tb))
	o := &observation{tb: tb, seen: make(chan leader.Participant, 100), ended: make(chan error, 1), cancel: cancel}
	go func() {
		var last error
		for who, err := range k.observe(ctx, client, electionPath) {
			if last = err; err == nil {
				o.seen <- who
			}
		}
		o.ended <- last
	}()
	tb.Cleanup(cancel)
	return o
}

// want takes the next result; "" is no leader.
func (o *observation) want(id string) {
	o.tb.Helper()
	want := leader.Participant{ID: id, IsLeader: id != ""}
	if diff := cmp.Diff(want, receive(o.tb, o.seen, "who leads: "+id)); diff != "" {
		o.tb.Errorf("who leads (-want +got):\n%s", diff)
	}
}

// end ends it.
func (o *observation) end() {
	o.tb.Helper()
	o.cancel()
	if err := receive(o.tb, o.ended, "the end"); !errors.Is(err, context.Canceled) {
		o.tb.Errorf("it ends with %v", err)
	}
	if n := len(o.seen); n != 0 {
		o.tb.Errorf("got %d changes more", n)
	}
}

// awaitNodes waits until so many stand in line.
func awaitNodes(tb testing.TB, client *framework.Client, want int) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		children, err := client.GetChildren().ForPath(testenv.Context(tb), electionPath)
		return (err == nil || errors.Is(err, zk.ErrNoNode)) && len(children) == want
	}, "all stand in line")
}

func TestObserverNewLeaderOfSameIDIsReported(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		connect := testenv.ConnectString(t)
		client := newClient(t, connect, steady)
		leave := k.start(t, client, "me")
		awaitNodes(t, client, 1)
		k.start(t, client, "me")
		awaitNodes(t, client, 2)
		changes := k.watch(t, newClient(t, connect, steady))
		changes.want("me")
		must(t, leave())
		changes.want("me")
		changes.end()
	})
}

func TestObserverGetsEachLeader(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		connect := testenv.ConnectString(t)
		client := newClient(t, connect, steady)
		changes := k.watch(t, newClient(t, connect, steady))
		changes.want("")
		leave := k.start(t, client, "first")
		changes.want("first")
		leaveToo := k.start(t, client, "second")
		awaitNodes(t, client, 2)
		leaveBehind := k.start(t, client, "third")
		awaitNodes(t, client, 3)
		must(t, leaveBehind()) // without ever having led
		awaitNodes(t, client, 2)
		must(t, leave())
		changes.want("second")
		must(t, leaveToo())
		changes.want("")
		changes.end()
	})
}

func TestObserverStoppedLeavesNoWatch(t *testing.T) {
	type observer = func(context.Context, *framework.Client, string) iter.Seq2[leader.Participant, error]
	for name, observe := range map[string]observer{
		"latches": leader.ObserveLatch, "selectors": leader.ObserveSelector,
	} {
		t.Run(name, func(t *testing.T) {
			server := curatortest.NewServerT(t)
			client := newClient(t, server.ConnectString(), steady)
			for who, err := range observe(t.Context(), client, electionPath) {
				if err != nil || who != (leader.Participant{}) {
					t.Errorf("%+v leads, error %v", who, err)
				}
				if server.Watches(electionPath) == 0 {
					t.Error("nothing is watched")
				}
				break
			}
			server.EventuallyT(t, "no watch is left", func() bool { return server.Watches(electionPath) == 0 })
		})
	}
}

// The leader changes while the observer has no connection, and its session ends.
func TestObserverSessionExpiredContinues(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		proxy, connect, direct := newProxy(t)
		client := newClient(t, direct, steady)
		leave := k.start(t, client, "first")
		awaitNodes(t, client, 1)
		leaveToo := k.start(t, client, "second")
		awaitNodes(t, client, 2)
		observer := newClient(t, connect, steady)
		changes := k.watch(t, observer)
		changes.want("first")
		testenv.Eventually(t, func() bool {
			reads := 0
			for _, e := range proxy.Faults().Trace() {
				if e.Op == "getData" && e.Reply {
					reads++
				}
			}
			return reads == 2
		}, "it has looked once more, and waits")
		session := observer.Session()
		restore := proxy.Faults().RefuseConnects()
		proxy.Faults().CutAll()
		must(t, testenv.Server(t).ExpireSession(session.ID()))
		must(t, leave())
		awaitNodes(t, client, 1)
		restore()
		changes.want("second")
		awaitLost(t, session)
		must(t, leaveToo()) // which it learns in the next session
		changes.want("")
		changes.end()
	})
}

// The node of the election is deleted without participants, and created again.
func TestObserverPathDeletedGetsNextLeader(t *testing.T) {
	ofEachKind(t, func(t *testing.T, k kind) {
		proxy, connect, direct := newProxy(t)
		client := newClient(t, direct, steady)
		changes := k.watch(t, newClient(t, connect, steady))
		for _, id := range []string{"first", "second"} {
			changes.want("")
			testenv.Eventually(t, func() bool { // it waits for the node
				return slices.ContainsFunc(proxy.Faults().Trace(), func(e curatortest.TraceEntry) bool {
					return e.Op == "exists" && e.Reply
				})
			}, "the election is watched for")
			leave := k.start(t, client, id)
			changes.want(id)
			proxy.Faults().ResetTrace()
			must(t, leave())
			awaitNodes(t, client, 0)
			if err := client.Delete().Quietly().ForPath(testenv.Context(t), electionPath); err != nil {
				t.Fatal(err)
			}
		}
		changes.want("")
		changes.end()
	})
}

// An observer watches the election while its reads are throttled.
func TestObserverThrottledGetsLeader(t *testing.T) {
	ctx, cancel := context.WithCancel(testenv.Context(t))
	defer cancel()
	proxy, connect, address := newProxy(t)
	client := newClient(t, connect, testclient.NoRetries, steady)
	must(t, client.BlockUntilConnected(ctx))
	throttled := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"getData", "getChildren2", "exists"}, Count: 10, Action: curatortest.ReplyError,
		Err: jute.ErrThrottledOp,
	})
	first, _ := startLatch(t, newClient(t, address), "first")
	await(t, first)
	for p, err := range leader.ObserveLatch(ctx, client, electionPath) {
		must(t, err)
		if p.ID == "first" && throttled.Hits() == 10 {
			return
		}
	}
}
