package leader_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
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
			testenv.Eventually(t, func() bool {
				all, err := s.Participants(testenv.Context(t))
				return err == nil && len(all) == 2
			}, "the next one waits")
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

func TestSelectorShortTurnIsNotWatched(t *testing.T) {
	for long, want := range map[time.Duration][]string{
		9 * time.Millisecond:  {"delete"},
		11 * time.Millisecond: {"getData", "delete"}, // the watch ends with the node
	} {
		synctest.Test(t, func(t *testing.T) {
			server := curatortest.NewServerT(t, curatortest.InMemory())
			client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext))
			f := newTurns()
			startSelector(t, client, f)
			receive(t, f.began, "it leads")
			server.Faults().ResetTrace()
			time.Sleep(long)
			f.stop <- nil
			time.Sleep(500 * time.Millisecond)
			var ops []string
			for _, e := range server.Faults().Trace() {
				if !e.Reply && e.Op != "ping" {
					ops = append(ops, e.Op)
				}
			}
			if diff := cmp.Diff(want, ops); diff != "" {
				t.Errorf("requests of a turn of %v (-want +got):\n%s", long, diff)
			}
		})
	}
}

func TestSelectorNodeStaysLeavesNoWatch(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	f := newTurns()
	startSelector(t, newClient(t, connect, steady), f)
	l := leader.LeadershipOf(receive(t, f.began, "it leads"))
	watched := func() bool {
		answer, err := testenv.Server(t).FourLetterWord(testenv.Context(t), "wchp")
		must(t, err)
		return strings.Contains(answer, l.Path())
	}
	testenv.Eventually(t, watched, "the node is watched")
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Count: 1, Action: curatortest.ReplyError,
		Err: zk.ErrNoAuth,
	})
	f.stop <- nil
	testenv.Eventually(t, func() bool { return !watched() }, "no watch is left")
}

// gatedLatch starts a latch that is first in line, and stops it there.
func gatedLatch(t *testing.T) (
	client *gated, proxy *curatortest.Proxy, direct *framework.Client, latch *leader.LeaderLatch, events *history,
) {
	t.Helper()
	proxy, connect, address := newProxy(t)
	client = &gated{Client: newClient(t, connect, steady), reached: make(chan struct{}), open: make(chan struct{})}
	must(t, client.BlockUntilConnected(testenv.Context(t)))
	latch, events = startLatch(t, client, "first")
	receive(t, client.reached, "it is its turn")
	return client, proxy, newClient(t, address), latch, events
}

// The latch is first in line, its connection is lost, and another client deletes its node.
func TestLatchNodeDeletedInOutageDoesNotLead(t *testing.T) {
	for _, when := range []string{"noticed in the outage", "noticed after the outage"} {
		t.Run(when, func(t *testing.T) {
			ctx := testenv.Context(t)
			client, proxy, direct, latch, events := gatedLatch(t)
			states := make(chan framework.ConnectionState, 10)
			client.ConnectionStateListeners().AddListener(func(_ context.Context, s framework.ConnectionState) { states <- s })
			restore := proxy.Faults().RefuseConnects()
			proxy.Faults().CutAll()
			for receive(t, states, "the connection is lost") != framework.Suspended { // Connected may come late
			}
			must(t, direct.Delete().ForPath(ctx, nodeOf(t, direct, "first")))
			next, _ := startLatch(t, direct, "next")
			await(t, next)
			look := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest})
			if when == "noticed in the outage" {
				close(client.open)
				restore()
			} else {
				restore()
				receive(t, states, "the connection is back")
				close(client.open)
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

// A latch that may not read its node leads without a watch.
func TestLatchWithoutReadPermissionLeads(t *testing.T) {
	proxy, connect, _ := newProxy(t)
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	})
	latch, events := startLatch(t, newClient(t, connect, steady), "me")
	l := events.want(true).Leadership
	testenv.Eventually(t, func() bool { return answered(proxy, "getChildren2") >= 3 },
		"it has lined up, and looked once more")
	if l.Context().Err() != nil || latch.Leadership() != l {
		t.Error("it leads no longer")
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

func TestErrorHandlerMayCloseSelector(t *testing.T) {
	var s *leader.LeaderSelector
	closed := make(chan error, 1)
	s = leader.NewLeaderSelector(newClient(t, testenv.ConnectString(t)), electionPath,
		func(context.Context) error { return errors.New("on purpose") },
		leader.WithOnError(func(context.Context, error) { closed <- s.Close() }))
	must(t, s.Start())
	must(t, receive(t, closed, "it is closed"))
}

func TestErrorHandlerGetsErrorsInOrder(t *testing.T) {
	turn, went, received := 0, make(chan struct{}), make(chan string, 10)
	s := leader.NewLeaderSelector(newClient(t, testenv.ConnectString(t)), electionPath, func(ctx context.Context) error {
		switch turn++; turn {
		case 1:
			return errors.New("first")
		case 2:
			return errors.New("second")
		}
		close(went)
		<-ctx.Done()
		return nil
	}, leader.WithAutoRequeue(), leader.WithOnError(func(_ context.Context, err error) {
		<-went // which holds up no turn
		received <- err.Error()
	}))
	must(t, s.Start())
	for _, want := range []string{"first", "second"} {
		if got := receive(t, received, "the error"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	must(t, s.Close())
}

// The read that watches the leader's node is refused for a while. Meanwhile another client deletes the node.
func TestRefusalThatPassesDelaysTheEndOfLeadership(t *testing.T) {
	for name, elect := range map[string]func(t *testing.T, client *framework.Client) *leader.Leadership{
		"latch": func(t *testing.T, client *framework.Client) *leader.Leadership {
			latch, _ := startLatch(t, client, "me")
			return await(t, latch)
		},
		"selector": func(t *testing.T, client *framework.Client) *leader.Leadership {
			f := newTurns()
			startSelector(t, client, f)
			return leader.LeadershipOf(receive(t, f.began, "it leads"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.InMemory())
				dial := framework.WithDialer(server.DialContext)
				refusal := server.Faults().Add(curatortest.Rule{
					Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
				})
				l := elect(t, newClient(t, server.ConnectString(), dial))
				must(t, refusal.Wait(testenv.Context(t)))
				must(t, newClient(t, server.ConnectString(), dial).Delete().ForPath(testenv.Context(t), l.Path()))
				refusal.Remove()
				receive(t, l.Context().Done(), "the end of its leadership")
				if cause := context.Cause(l.Context()); !errors.Is(cause, leader.ErrLeadershipLost) {
					t.Errorf("cause %v", cause)
				}
			})
		})
	}
}
