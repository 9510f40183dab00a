package leader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/leader"
)

// latchEvents records the events that a listener gets.
type latchEvents struct {
	mu     sync.Mutex
	events []bool
}

func (r *latchEvents) listener(_ context.Context, ev leader.LatchEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev.IsLeader)
}

func (r *latchEvents) want(t *testing.T, what string, want ...bool) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.events, want) {
		t.Errorf("%s gets %v, want %v", what, r.events, want)
	}
}

// blockedLatch returns a latch that leads, and whose first listener does not return from its first call before release.
func blockedLatch(t *testing.T, client *framework.Client, mode leader.CloseMode) (
	latch *leader.LeaderLatch, first, second *latchEvents, release func(),
) {
	t.Helper()
	first, second = &latchEvents{}, &latchEvents{}
	blocked := make(chan struct{})
	latch = leader.NewLeaderLatch(client, electionPath, leader.WithCloseMode(mode))
	latch.AddListener(func(ctx context.Context, ev leader.LatchEvent) {
		first.listener(ctx, ev)
		<-blocked
	})
	latch.AddListener(second.listener)
	must(t, latch.Start())
	synctest.Wait()
	first.want(t, "the first, which leads,", true)
	return latch, first, second, sync.OnceFunc(func() { close(blocked); synctest.Wait() })
}

func TestLatchListenerBehindBlockedOneGetsNothingAfterClose(t *testing.T) {
	for name, tt := range map[string]struct {
		mode leader.CloseMode
		want []bool // by the first
	}{
		"silent": {leader.Silent, []bool{true}}, "notify leader": {leader.NotifyLeader, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, _ *curatortest.Server, client *framework.Client) {
				t.Helper()
				latch, first, second, release := blockedLatch(t, client, tt.mode)
				began := time.Now()
				must(t, latch.Close())
				if took := time.Since(began); took != time.Second {
					t.Errorf("Close waits for %v", took)
				}
				release()
				second.want(t, "the second")
				first.want(t, "the first", tt.want...)
			})
		})
	}
}

// A program that keeps a flag leads for ever if it is called after Close.
func TestLatchClosedAtRandomMomentCallsNoListener(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t), steady)
	must(t, client.BlockUntilConnected(testenv.Context(t)))
	for i := range 600 {
		mode := leader.CloseMode(i % 2)
		latch := leader.NewLeaderLatch(client, electionPath, leader.WithCloseMode(mode))
		var leads, closed atomic.Bool
		latch.AddListener(func(_ context.Context, ev leader.LatchEvent) {
			leads.Store(ev.IsLeader)
			if closed.Load() {
				t.Errorf("called after Close: it leads: %t", ev.IsLeader)
			}
		})
		must(t, latch.Start())
		for range rand.IntN(4) {
			must(t, client.Sync().ForPath(testenv.Context(t), "/"))
		}
		for end := time.Now().Add(rand.N(50 * time.Microsecond)); time.Now().Before(end); {
		}
		began := time.Now()
		must(t, latch.Close())
		if time.Since(began) >= time.Second {
			continue // it has not waited any longer for a listener that a busy machine calls late
		}
		closed.Store(true)
		if mode == leader.NotifyLeader && leads.Load() {
			t.Error("got a beginning without an end")
		}
	}
}

func TestLatchCloseWaitsForSlowListener(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ *curatortest.Server, client *framework.Client) {
		t.Helper()
		var got latchEvents
		latch := leader.NewLeaderLatch(client, electionPath, leader.WithCloseMode(leader.NotifyLeader))
		latch.AddListener(func(ctx context.Context, ev leader.LatchEvent) {
			<-time.After(100 * time.Millisecond)
			got.listener(ctx, ev)
		})
		must(t, latch.Start())
		await(t, latch)
		synctest.Wait()
		must(t, latch.Close())
		got.want(t, "the listener", true, false)
	})
}

// The blocked listener misses the leaderships that begin and end meanwhile. It gets the end of the one that it knows.
func TestLatchListenerBlockedMissesEndedLeaderships(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, server *curatortest.Server, client *framework.Client) {
		t.Helper()
		latch, first, second, release := blockedLatch(t, client, leader.NotifyLeader)
		for range 3 {
			before := await(t, latch)
			server.Faults().CutAll()
			<-before.Context().Done()
			await(t, latch)
		}
		release()
		first.want(t, "the first", true, false, true)
		second.want(t, "the second", true)
		must(t, latch.Close())
		first.want(t, "the first, closed,", true, false, true, false)
		second.want(t, "the second, closed,", true, false)
	})
}

// The end of a leadership that was lost before a silent Close is no news of that Close.
func TestLatchListenerBlockedGetsEndBeforeSilentClose(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, server *curatortest.Server, client *framework.Client) {
		t.Helper()
		latch, first, second, release := blockedLatch(t, client, leader.Silent)
		defer server.Faults().RefuseConnects()()
		l := await(t, latch)
		server.Faults().CutAll()
		<-l.Context().Done()
		synctest.Wait()
		must(t, latch.Close())
		release()
		first.want(t, "the first", true, false)
		second.want(t, "the second")
	})
}

func TestLatchListenerContextEndsAfterLastEvent(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ *curatortest.Server, client *framework.Client) {
		t.Helper()
		latch := leader.NewLeaderLatch(client, electionPath, leader.WithCloseMode(leader.NotifyLeader))
		var last context.Context
		latch.AddListener(func(ctx context.Context, _ leader.LatchEvent) {
			if last = ctx; ctx.Err() != nil {
				t.Errorf("called with a context that has ended: %v", context.Cause(ctx))
			}
		})
		must(t, latch.Start())
		await(t, latch)
		synctest.Wait()
		must(t, latch.Close())
		if cause := context.Cause(last); !errors.Is(cause, leader.ErrClosed) {
			t.Errorf("after Close the cause is %v", cause)
		}
	})
}

func TestLatchListenerWaitingForContextEndsWithClose(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ *curatortest.Server, client *framework.Client) {
		t.Helper()
		latch := leader.NewLeaderLatch(client, electionPath)
		returned := make(chan struct{})
		latch.AddListener(func(ctx context.Context, _ leader.LatchEvent) {
			<-ctx.Done()
			close(returned)
		})
		must(t, latch.Start())
		await(t, latch)
		synctest.Wait()
		must(t, latch.Close())
		<-returned
	})
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

// No leadership begins once the latch is closed.
func TestLatchClosedNotifiesNoLeadership(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ *curatortest.Server, client *framework.Client) {
		t.Helper()
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
	})
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

// In Java: TestLeaderLatch.testCallbackDontNotify.
func TestLatchCloseModeDecidesNotification(t *testing.T) {
	for name, tt := range map[string]struct {
		mode  leader.CloseMode
		leads bool
		ends  int // events of Close
	}{
		"silent":                     {leader.Silent, true, 0},
		"notify leader":              {leader.NotifyLeader, true, 1},
		"notify leader, has not led": {leader.NotifyLeader, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, testenv.ConnectString(t))
			if !tt.leads {
				first, _ := startLatch(t, client, "first")
				await(t, first)
			}
			latch, events := startLatch(t, client, "me", leader.WithCloseMode(tt.mode))
			if !tt.leads {
				awaitParticipants(t, latch, 2)
			} else if ev := events.want(true); ev.Leadership != latch.Leadership() {
				t.Error("another leadership")
			}
			must(t, latch.Close())
			for range tt.ends {
				events.want(false)
			}
			if n := len(events.received); n != 0 {
				t.Errorf("got %d more", n)
			}
		})
	}
}
