package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// The client does not pause before it takes its session to the next connection: in virtual time none passes.
func TestReconnectHasNoPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client, recorded := connectRecorded(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		for range 50 {
			pass(t, time.Second) // after which a connection does not count as one that flaps
			took(t, 0, "the next connection", func() {
				server.Faults().CutAll()
				recorded.want(t, suspended, reconnected)
			})
		}
		recorded.end(t, client)
	})
}

// The session outlives dropped connections, on either side.
// In Java: client.TestResetConnectionWithBackgroundFailure.
func TestReconnectKeepsSession(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client, recorded := connectRecorded(t, connect)
	session := client.Session()
	drops := []func(){
		func() { proxy.Faults().CutAll() }, // the network
		func() { // the server
			// An error says that the client was faster: the states report what counts.
			_ = curatortest.DropConnection(testenv.Context(t), testenv.Addr(t), session.ID())
		},
	}
	for _, drop := range drops {
		for range 50 {
			fence(t, client) // one that has not served anything is met with pauses
			drop()
			recorded.want(t, suspended, reconnected)
		}
	}
	if client.Session() != session {
		t.Error("another session")
	}
	recorded.end(t, client)
}

// An operation that goes on through a dropped connection is not slower than the connection.
func TestReconnectOperationsContinue(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	const cuts = 30 // each may cut an operation once
	client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(cuts, 10*time.Millisecond)))
	ctx, cancel := context.WithCancel(testenv.Context(t))
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				_, err := client.GetData().ForPath(ctx, "/")
				if err != nil && ctx.Err() == nil {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				n.Add(1)
			}
		})
	}
	for range cuts {
		at := n.Load()
		testenv.Eventually(t, func() bool { return n.Load() > at+10 }, "more operations")
		proxy.Faults().CutAll()
	}
	cancel()
	wg.Wait()
}

func TestReconnectLeavesSilentServerInConnectionTimeout(t *testing.T) {
	t.Parallel()
	const connectionTimeout, slack = 500 * time.Millisecond, 1500 * time.Millisecond // a third of the session is more

	for round := range 6 { // the servers are tried in any order
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			onTwoServers(t, func(t *testing.T, mute, proxy testenv.Place, chroot string, dial framework.Option) {
				t.Cleanup(mute.Faults().AcceptSilently())
				client := newClient(t, mute.Addr()+","+proxy.Addr()+chroot, dial,
					framework.WithConnectionTimeout(connectionTimeout))
				recorded := record(client)
				start(t, client)
				took(t, connectionTimeout+slack, "the first connection", func() {
					recorded.want(t, connected)
				})
				for range 2 {
					proxy.Faults().CutAll()
					recorded.want(t, suspended)
					took(t, connectionTimeout+slack, "the next connection", func() {
						recorded.want(t, reconnected)
					})
				}
			})
		})
	}
}

// A server that is mute in the middle of it costs two thirds of the session timeout, not the whole.
func TestReconnectLeavesSilencedServerBeforeSessionEnds(t *testing.T) {
	t.Parallel()
	onTwoServers(t, func(t *testing.T, one, two testenv.Place, chroot string, dial framework.Option) {
		client, recorded := connectRecorded(t, one.Addr()+","+two.Addr()+chroot, dial,
			framework.WithSessionTimeout(6*time.Second), framework.WithConnectionTimeout(3*time.Second))
		session := client.Session()
		for range 2 {
			current := one
			if one.Faults().Connections() == 0 {
				current = two
			}
			restore := current.Faults().BlackHole(curatortest.Both)
			recorded.want(t, suspended, reconnected)
			restore()
		}
		if client.Session() != session {
			t.Error("another session")
		}
		recorded.end(t, client)
	})
}

// A watch event that was missed while there was no connection is seen before what is newer than it.
func TestReconnectMissedWatchEventPrecedesNewerData(t *testing.T) {
	t.Parallel()
	const clients, rounds = 4, 250
	proxy, connect := newProxy(t)
	writer := connectClient(t, testenv.Addr(t)+chrootOf(connect))
	for i := range clients {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			path := fmt.Sprint("/watched-", i)
			create(t, writer, path, "")
			client := connectClient(t, connect, framework.WithRetryPolicy(retry.NTimes(100, time.Millisecond)))
			fired := make(chan zk.Event, 100)
			watcher := callbacks.NewChanWatcher(fired)
			for round := range rounds {
				if _, err := client.GetData().UsingWatcher(watcher).ForPath(ctx, path); err != nil {
					t.Fatal(err)
				}
				if round%2 == 0 {
					proxy.Faults().Cut(client.SessionID())
				}
				changed, err := writer.SetData().ForPath(ctx, path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if round%2 == 1 {
					proxy.Faults().Cut(client.SessionID())
				}
				seen := false
				for newer := false; !newer; {
					var now zk.Stat
					if _, err := client.GetData().StoringStatIn(&now).ForPath(ctx, path); err != nil {
						t.Fatal(err)
					}
					newer = now.Mzxid >= changed.Mzxid
				drain:
					for {
						select {
						case ev := <-fired:
							seen = seen || ev.Type == zk.EventNodeDataChanged
						default:
							break drain
						}
					}
				}
				if !seen {
					t.Fatalf("round %d: newer data before the event", round)
				}
			}
		})
	}
}

// Nothing that was issued in one session is executed in the next: what fails with its session has not been
// created, and what was created belongs to one session after the other.
func TestReconnectRequestsOfOldSessionAreNotExecuted(t *testing.T) {
	t.Parallel()
	const sessions, window = 8, 200
	client, _ := connectRecorded(t, testenv.ConnectString(t), framework.WithRetryPolicy(retry.NTimes(0, 0)))
	ctx := testenv.Context(t)

	type issued struct {
		name   string
		before int64 // the session when it was submitted
		result chan callbacks.Event
	}
	var all []issued
	for range sessions {
		before := client.Session()
		slots := make(chan struct{}, window)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			expire(t, client)
		}()
		for more := true; more; {
			op := issued{numbered("/n", len(all)), client.SessionID(), make(chan callbacks.Event, 1)}
			slots <- struct{}{}
			err := client.Create().WithMode(builders.Ephemeral).InBackground(
				func(_ context.Context, ev callbacks.Event) {
					op.result <- ev
					<-slots
				},
			).ForPath(ctx, op.name, []byte{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, op)
			more = before.Context().Err() == nil
		}
		<-ended
		awaitConnected(t, client)
	}

	created, lastOwner := 0, int64(0)
	owners := map[int64]bool{}
	for _, op := range all {
		ev := receive(t, op.result)
		switch {
		case ev.Err == nil:
			created++
			owner := ev.Stat.EphemeralOwner
			if owner != lastOwner && owners[owner] {
				t.Errorf("%s: of session %#x after one of %#x", op.name, owner, lastOwner)
			}
			owners[owner], lastOwner = true, owner
		case errors.Is(ev.Err, framework.ErrConnectionLoss):
			if exists(t, client, op.name) {
				t.Errorf("%s: failed with session %#x and exists in %#x", op.name, op.before, client.SessionID())
			}
		default:
			t.Errorf("%s: %v", op.name, ev.Err)
		}
	}
	t.Logf("%d of %d created in %d sessions", created, len(all), len(owners))
	if len(owners) < 2 {
		t.Errorf("nodes of %d sessions, want more", len(owners))
	}
}

// The order of submission is that of execution, through outages too as far as there is no retry.
func TestReconnectParkedOperationsKeepOrder(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client, recorded := connectRecorded(t, connect)
	for range 5 {
		restore := outage(proxy)
		recorded.want(t, suspended)
		results := newEvents()
		const n = 100
		for i := range n {
			must(t, client.Create().WithMode(builders.PersistentSequential).InBackground(results.callback).
				ForPath(testenv.Context(t), "/s-", fmt.Append(nil, i)))
		}
		restore()
		recorded.want(t, reconnected)
		var last string
		for i := range n {
			ev := receive(t, results)
			if ev.Err != nil || string(ev.Data) != fmt.Sprint(i) || ev.Name <= last {
				t.Fatalf("result %d: %s %q after %s: %v", i, ev.Name, ev.Data, last, ev.Err)
			}
			last = ev.Name
		}
	}
}

// A dialer of one's own opens every connection, and its errors are those of a server that is not there.
func TestDialer(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	addr, chroot := split(connect)
	var dialed atomic.Int32
	var refuse atomic.Bool
	client, recorded := connectRecorded(t, "zk.example:2181"+chroot, framework.WithDialer(
		func(ctx context.Context, network, address string) (net.Conn, error) {
			if network != "tcp" || address != "zk.example:2181" {
				return nil, fmt.Errorf("dial %s %s", network, address)
			}
			if refuse.Load() {
				return nil, errors.New("refused")
			}
			dialed.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}))
	refuse.Store(true)
	must(t, curatortest.DropConnection(testenv.Context(t), addr, client.SessionID()))
	recorded.want(t, suspended)
	refuse.Store(false)
	recorded.want(t, reconnected)
	if n := dialed.Load(); n < 2 { // more on a busy machine: see want
		t.Errorf("dialed %d times, want at least 2", n)
	}
	recorded.end(t, client)
}
