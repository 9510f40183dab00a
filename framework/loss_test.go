package framework_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// tick is how much later than by the book a session may be lost: a quarter of the unit of time of a server
// with the default configuration.
const tick = 500 * time.Millisecond

// Whatever becomes of the connection, the session ends at the latest when its timeout has passed since the
// last answer; F13.
func TestSessionOfSilentNetworkIsLostInTime(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for _, direction := range []curatortest.Direction{
		curatortest.ToServer, curatortest.ToClient, curatortest.Both,
	} {
		t.Run(direction.String(), func(t *testing.T) {
			t.Parallel()
			onTwoServers(t, func(t *testing.T, proxy, bystander testenv.Place, chroot string, dial framework.Option) {
				client := newClient(t, proxy.Addr()+chroot, dial, framework.WithSessionTimeout(timeout))
				ended := make(chan time.Time, 1)
				client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
					if s == lost {
						ended <- time.Now()
					}
				})
				start(t, client)
				awaitConnected(t, client)
				session := client.Session()
				other := connectClient(t, bystander.Addr()+chroot, dial)
				create(t, other, "/busy", "")
				noise := noisyWatch(t, client, "/busy")

				restore := proxy.Faults().BlackHole(direction)
				dark := time.Now()
				stop := noise(other)
				<-session.Context().Done()
				took := time.Since(dark)
				if took > testenv.InTime(timeout+tick) {
					t.Errorf("the session has ended %v after the last answer, want %v", took, timeout)
				}
				// The last ping was sent a third of the timeout ago at most.
				if took < timeout*2/3-100*time.Millisecond {
					t.Errorf("the session has ended after %v already, want %v", took, timeout)
				}
				wantErr(t, "cause", context.Cause(session.Context()), framework.ErrSessionLost)
				if at := receive(t, ended); at.Sub(dark) > testenv.InTime(timeout+tick) {
					t.Errorf("listeners get %v after the last answer, want %v", at.Sub(dark), timeout)
				}
				stop()
				restore()
				awaitConnected(t, client)
				if client.SessionID() == session.ID() {
					t.Error("the same session")
				}
			})
		})
	}
}

func chrootOf(connect string) string {
	_, chroot := split(connect)
	return chroot
}

// noisyWatch has client watch path for good. What it returns makes events for it until stopped: they show
// that the server can be heard, not that it hears.
func noisyWatch(t *testing.T, client *framework.Client, path string) func(*framework.Client) (stop func()) {
	t.Helper()
	watcher, _ := newWatcher()
	if err := client.Watches().Add().UsingWatcher(watcher).ForPath(testenv.Context(t), path); err != nil {
		t.Fatal(err)
	}
	return func(writer *framework.Client) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range time.Tick(20 * time.Millisecond) {
				if _, err := writer.SetData().ForPath(ctx, path, nil); err != nil {
					return
				}
			}
		}()
		return func() {
			cancel()
			<-done
		}
	}
}

// Answers that were on their way for longer than the timeout come too late: the session is not taken back.
func TestSessionAnsweredTooLateIsLost(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client, recorded := connectRecorded(t, connect, dial, framework.WithSessionTimeout(timeout))
		session := client.Session()
		thaw := proxy.Faults().Freeze()
		frozen := time.Now()
		<-session.Context().Done()
		if d := time.Since(frozen); d > testenv.InTime(timeout+tick) {
			t.Errorf("the session has ended %v after the last answer, want %v", d, timeout)
		}
		thaw()
		recorded.want(t, suspended, lost, reconnected)
		recorded.end(t, client)
	})
}

// A session that the server has kept is never taken for lost.
func TestSessionOfPausedServerIsKept(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	onOwnServer(t, func(t *testing.T, server testenv.Instance, dial framework.Option) {
		client, recorded := connectRecorded(t, server.ConnectString(), dial, framework.WithSessionTimeout(timeout))
		session := client.Session()
		createEphemeral(t, client, "/mine")
		for range 3 {
			must(t, server.Freeze())
			pass(t, timeout/2) // with the pause since the last ping still less than the timeout
			must(t, server.Thaw())
			if !exists(t, client, "/mine") {
				t.Fatal("the ephemeral node is gone")
			}
		}
		if client.Session() != session || session.Context().Err() != nil {
			t.Error("the session was taken for lost")
		}
		closeClient(t, client)
		close(recorded)
		for s := range recorded {
			if s != suspended && s != reconnected {
				t.Errorf("state %v of a session that lives", s)
			}
		}
	})
}

// A listener sees only sequences of states that make sense, whatever happens to the connection; F13.
func TestStatesUnderRandomFaultsAreInOrder(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			randomFaults(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func randomFaults(t *testing.T, random *rand.Rand) {
	t.Helper()
	const timeout = 400 * time.Millisecond
	proxy, connect := newProxy(t)
	client := newClient(t, connect, framework.WithSessionTimeout(timeout))
	recorded := record(client)
	start(t, client)
	ctx := testenv.Context(t)
	for range 40 {
		short := time.Duration(random.Int64N(int64(timeout / 4)))
		long := short + timeout
		restore := func() {}
		switch random.IntN(8) {
		case 0, 1:
			proxy.Faults().CutAll()
		case 2:
			restore = outage(proxy)
			pass(t, short)
		case 3:
			restore = outage(proxy)
			pass(t, long)
		case 4:
			restore = proxy.Faults().BlackHole(curatortest.Direction(1 + random.IntN(3)))
			pass(t, short)
		case 5:
			err := curatortest.ExpireSession(ctx, testenv.Addr(t), client.SessionID())
			if err != nil && !errors.Is(err, zk.ErrSessionExpired) { // it may have ended by itself
				t.Fatal(err)
			}
		case 6:
			must(t, client.Reset())
		case 7: // while a connection is being made
			proxy.Faults().CutAll()
			pass(t, time.Duration(random.Int64N(int64(15*time.Millisecond))))
			restore = outage(proxy)
		}
		restore()
		if random.IntN(3) > 0 {
			awaitConnected(t, client)
		}
	}
	awaitConnected(t, client)
	testenv.Eventually(t, func() bool { // the last of the faults may only show now
		mine, err := client.Create().WithProtection().WithMode(builders.Ephemeral).ForPath(ctx, "/mine", nil)
		if err != nil {
			return false
		}
		session := client.Session()
		stat, err := client.CheckExists().ForPath(ctx, mine)
		return err == nil && stat != nil && stat.EphemeralOwner == session.ID()
	}, "whatever has been, it works: a node of the session")
	closeClient(t, client)
	close(recorded)
	checkStates(t, recorded)
}

// checkStates fails if a sequence of states makes no sense.
func checkStates(t *testing.T, recorded states) {
	t.Helper()
	var seen []framework.ConnectionState
	var before framework.ConnectionState
	everConnected := false
	for s := range recorded {
		seen = append(seen, s)
		up := connected
		if everConnected {
			up = reconnected
		}
		legal := map[framework.ConnectionState][]framework.ConnectionState{
			0:           {up, suspended, lost},
			suspended:   {up, lost},
			lost:        {up},
			connected:   {suspended, lost},
			reconnected: {suspended, lost},
		}
		ok := false
		for _, next := range legal[before] {
			ok = ok || next == s
		}
		if !ok {
			t.Fatalf("states %v: %v after %v", seen, s, before)
		}
		everConnected = everConnected || s == connected
		before = s
	}
}

// The end of a session is known before anything of the next one can happen.
func TestSessionBeginsAfterEndOfLast(t *testing.T) {
	t.Parallel()
	client := connectClient(t, testenv.ConnectString(t))
	session := client.Session()
	expire(t, client)
	<-session.Context().Done()
	results := newEvents()
	err := client.Create().WithMode(builders.Ephemeral).InBackground(results.callback).
		ForPath(testenv.Context(t), "/mine", nil)
	if err != nil {
		t.Fatal(err)
	}
	ev := receive(t, results)
	if ev.Err != nil || ev.Stat.EphemeralOwner == session.ID() || ev.Stat.EphemeralOwner != client.SessionID() {
		t.Errorf("node %v after the end of session %#x: %v", ev.Stat, session.ID(), ev.Err)
	}
}

// The client gives a session up. Whoever sees the end of its context may begin again at once, in the next session.
func TestSessionGivenUpTakesNothingMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, connect string, dial framework.Option) {
		const waiters = 8
		client := connectClient(t, connect, dial)
		for range testenv.Size(60, 10, 60) {
			session := client.Session()
			var wg sync.WaitGroup
			for range waiters {
				wg.Go(func() {
					<-session.Context().Done()
					var stat zk.Stat
					_, err := client.Create().WithMode(builders.EphemeralSequential).StoringStatIn(&stat).
						ForPath(testenv.Context(t), "/mine", nil)
					if err != nil || stat.EphemeralOwner == session.ID() {
						t.Errorf("a node of %#x after the end of session %#x: %v", stat.EphemeralOwner, session.ID(), err)
					}
				})
			}
			must(t, client.Reset())
			wg.Wait()
			awaitConnected(t, client)
		}
	})
}
