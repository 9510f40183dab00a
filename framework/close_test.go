package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// The tests that look at all goroutines are not parallel: those of others are no concern of theirs.

// Close is fast in each phase of a client's life, and leaves no goroutine.
func TestCloseLeavesNothingInAnyPhase(t *testing.T) {
	const wait = time.Second // for an answer of the server that does not come
	proxy, connect := newProxy(t)
	reach := func(t *testing.T, client *framework.Client, want ...framework.ConnectionState) {
		t.Helper()
		recorded := record(client)
		start(t, client)
		recorded.await(t, want...)
	}
	tests := []struct {
		name  string
		opts  []framework.Option
		limit time.Duration
		enter func(t *testing.T, client *framework.Client) (restore func())
	}{
		{"never started", nil, 0, func(*testing.T, *framework.Client) func() { return func() {} }},
		{"just started", nil, 0, func(t *testing.T, client *framework.Client) func() {
			t.Helper()
			start(t, client)
			return func() {}
		}},
		{"connected", nil, 0, func(t *testing.T, client *framework.Client) func() {
			t.Helper()
			reach(t, client, connected)
			return func() {}
		}},
		{"refused", nil, 0, func(t *testing.T, client *framework.Client) func() {
			t.Helper()
			restore := proxy.Faults().RefuseConnects()
			reach(t, client, suspended)
			return restore
		}},
		{"dialing", []framework.Option{framework.WithDialer(
			func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		)}, 0, func(t *testing.T, client *framework.Client) func() {
			t.Helper()
			start(t, client)
			return func() {}
		}},
		{"shaking hands with a mute server", nil, 0, func(t *testing.T, client *framework.Client) func() {
			t.Helper()
			restore := proxy.Faults().AcceptSilently()
			start(t, client)
			testenv.Eventually(t, func() bool { return proxy.Faults().Connections() > 0 }, "a connection")
			return restore
		}},
		{"suspended", nil, 0, func(t *testing.T, client *framework.Client) func() {
			t.Helper()
			reach(t, client, connected)
			return outage(proxy)
		}},
		{
			"lost",
			[]framework.Option{framework.WithSessionTimeout(testenv.SessionTimeout)},
			0,
			func(t *testing.T, client *framework.Client) func() {
				t.Helper()
				recorded := record(client)
				start(t, client)
				recorded.want(t, connected)
				restore := outage(proxy)
				recorded.want(t, suspended, lost)
				return restore
			},
		},
		{"session given up", nil, 0, func(t *testing.T, client *framework.Client) func() {
			t.Helper()
			reach(t, client, connected)
			must(t, client.Reset())
			return func() {}
		}},
		{
			"connected to a server that has fallen mute", nil, wait,
			func(t *testing.T, client *framework.Client) func() {
				t.Helper()
				reach(t, client, connected)
				return proxy.Faults().BlackHole(curatortest.Both)
			},
		},
		{
			"credentials refused",
			[]framework.Option{framework.WithAuth("nonsense", nil)},
			0,
			func(t *testing.T, client *framework.Client) func() {
				t.Helper()
				reach(t, client, lost)
				return func() {}
			},
		},
	}
	for _, tt := range tests {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, busy %v", tt.name, busy), func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				// There is nothing to wait for in the other phases: what never comes takes twice as long as allowed.
				closeWait := 2 * soon
				if tt.limit > 0 {
					closeWait = tt.limit
				}
				client, err := framework.New(connect, append([]framework.Option{
					framework.WithMaxCloseWait(closeWait),
					framework.WithConnectionTimeout(2 * soon),
					framework.WithoutEnsembleTracker(),
					framework.WithRetryPolicy(retry.Forever(10 * time.Millisecond)),
				}, tt.opts...)...)
				if err != nil {
					t.Fatal(err)
				}
				defer closeClient(t, client)
				restore := tt.enter(t, client)
				defer restore()
				started := client.State() == framework.Started
				results := newEvents()
				waiting := make(chan error, 1)
				if busy && started {
					for i := range 100 {
						must(t, client.Create().WithMode(builders.Ephemeral).WithProtection().
							InBackground(results.callback).ForPath(t.Context(), numbered("/a", i), nil))
					}
					go func() {
						_, err := client.GetData().ForPath(testenv.Context(t), "/")
						waiting <- err
					}()
				} else {
					close(waiting)
				}
				took(t, tt.limit+soon, "Close", func() { must(t, client.Close()) })
				if busy && started && len(results) != 100 {
					t.Errorf("%d callbacks, want 100", len(results))
				}
				<-waiting
				if err := goleak.Find(before, proxyLink, proxyPump, serverConn, serverOutbox); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// What a proxy and a server run for a connection ends some time after its client.
var (
	proxyLink = goleak.IgnoreAnyFunction("github.com/gocurator/curator/curatortest.(*link).run")
	proxyPump = goleak.IgnoreAnyFunction("github.com/gocurator/curator/curatortest.(*pump).run")

	serverConn   = goleak.IgnoreAnyFunction("github.com/gocurator/curator/internal/zkserver.(*conn).serve")
	serverOutbox = goleak.IgnoreAnyFunction("github.com/gocurator/curator/internal/zkserver.(*outbox).send")
)

func TestCloseEndsSessionOnServer(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	other := connectClient(t, connect)
	client := connectClient(t, connect)
	createEphemeral(t, client, "/mine")
	const n = 500
	results := newEvents()
	for range n { // what is in flight is done before the goodbye
		must(t, client.Create().WithMode(builders.PersistentSequential).InBackground(results.callback).
			ForPath(t.Context(), "/s-", []byte{}))
	}
	closeClient(t, client)
	if exists(t, other, "/mine") {
		t.Error("the session lives on")
	}
	for range n {
		if ev := receive(t, results); ev.Err != nil {
			t.Fatal(ev.Err)
		}
	}
}

// C-472: what cannot be waited for is not waited for.
func TestCloseFromCallbackReturns(t *testing.T) {
	const wait = 100 * time.Millisecond
	connect := testenv.ConnectString(t)
	ctx := testenv.Context(t)
	tests := map[string]func(t *testing.T, client *framework.Client, call func()){
		"background callback": func(t *testing.T, client *framework.Client, call func()) {
			t.Helper()
			start(t, client)
			must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { call() }).ForPath(ctx, "/"))
		},
		"watcher": func(t *testing.T, client *framework.Client, call func()) {
			t.Helper()
			start(t, client)
			watcher := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) {
				if ev.Type != zk.EventSession {
					call()
				}
			})
			if _, err := client.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/a"); err != nil {
				t.Error(err)
			}
			_, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/a", nil)
			if err != nil && !errors.Is(err, framework.ErrClosed) {
				t.Error(err)
			}
		},
		"listener": func(t *testing.T, client *framework.Client, call func()) {
			t.Helper()
			client.AddCuratorListener(func(_ context.Context, ev callbacks.Event) {
				if ev.Type == callbacks.Sync {
					call()
				}
			})
			start(t, client)
			must(t, client.Sync().InBackground(nil).ForPath(ctx, "/"))
		},
		"connection state listener": func(t *testing.T, client *framework.Client, call func()) {
			t.Helper()
			client.AddConnectionStateListener(func(context.Context, framework.ConnectionState) { call() })
			start(t, client)
		},
		"unhandled error listener": func(t *testing.T, client *framework.Client, call func()) {
			t.Helper()
			client.AddUnhandledErrorListener(func(context.Context, framework.UnhandledError) { call() })
			start(t, client)
			must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) { panic("now") }).
				ForPath(ctx, "/"))
		},
	}
	for name, enter := range tests {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			client, err := framework.New(connect, framework.WithMaxCloseWait(wait))
			if err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			enter(t, client, func() {
				took(t, 2*wait+soon, "Close", func() { result <- client.Close() })
			})
			wantErr(t, "Close", receive(t, result), framework.ErrCloseTimeout)
			wantErr(t, "Close again", client.Close(), framework.ErrCloseTimeout)
			// Now that the callback is over.
			if err := goleak.Find(before, proxyLink, proxyPump, serverConn, serverOutbox); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCloseWaitForCallbacksIsBounded(t *testing.T) {
	t.Parallel()
	const wait = 200 * time.Millisecond
	client, err := framework.New(testenv.ConnectString(t), framework.WithMaxCloseWait(wait))
	if err != nil {
		t.Fatal(err)
	}
	leave := make(chan struct{})
	entered := make(chan struct{}, 2)
	client.AddConnectionStateListener(func(context.Context, framework.ConnectionState) {
		entered <- struct{}{}
		<-leave
	})
	start(t, client)
	results := newEvents()
	must(t, client.Sync().InBackground(func(context.Context, callbacks.Event) {
		entered <- struct{}{}
		<-leave
	}).ForPath(t.Context(), "/"))
	must(t, client.Sync().InBackground(results.callback).ForPath(t.Context(), "/"))
	receive(t, entered)
	receive(t, entered)
	began := time.Now()
	wantErr(t, "Close", client.Close(), framework.ErrCloseTimeout)
	if d := time.Since(began); d < wait || d > 3*wait+soon {
		t.Errorf("Close took %v, want about %v", d, wait)
	}
	if len(results) > 0 {
		t.Error("a callback beside another")
	}
	close(leave)
	receive(t, results) // a waiter still gets it
}

// Close waits for a listener first, and then ends its context.
func TestCloseEndsListenerContexts(t *testing.T) {
	for name, test := range map[string]struct {
		started, waits bool
		want           error
	}{
		"client that is not started":          {false, false, nil},
		"listeners that return":               {true, false, nil},
		"listener that waits for its context": {true, true, framework.ErrCloseTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext))
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				contexts := make(map[string]context.Context)
				note := func(kind string, ctx context.Context) {
					mu.Lock()
					defer mu.Unlock()
					if contexts[kind] = ctx; ctx.Err() != nil && test.started {
						t.Errorf("%s listener: called with a context that has ended: %v", kind, context.Cause(ctx))
					}
				}
				client.AddCuratorListener(func(ctx context.Context, ev callbacks.Event) {
					if note(ev.Type.String(), ctx); test.waits {
						<-ctx.Done()
					}
				})
				client.AddConnectionStateListener(func(ctx context.Context, _ framework.ConnectionState) {
					note("state", ctx)
				})
				client.AddUnhandledErrorListener(func(ctx context.Context, _ framework.UnhandledError) {
					note("unhandled", ctx)
				})
				kinds := 1
				if test.started {
					start(t, client)
					must(t, client.BlockUntilConnected(t.Context()))
					client.ReportUnhandled(t.Context(), "on purpose", errors.New("no error"))
					kinds = 3
				}
				wantErr(t, "Close", client.Close(), test.want)
				if !test.started {
					client.ReportUnhandled(t.Context(), "on purpose", errors.New("no error"))
				}
				synctest.Wait()
				if len(contexts) != kinds {
					t.Errorf("the listeners that were called: %v", contexts)
				}
				for kind, ctx := range contexts {
					if cause := context.Cause(ctx); !errors.Is(cause, framework.ErrClosed) {
						t.Errorf("%s listener: after Close the cause is %v", kind, cause)
					}
				}
			})
		})
	}
}

// A program that keeps the state would be connected for ever.
func TestStateListenerBehindBlockedOneIsNotCalledAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client, err := framework.New(server.ConnectString(), framework.WithDialer(server.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		entered, leave := false, make(chan struct{})
		client.AddConnectionStateListener(func(context.Context, framework.ConnectionState) {
			entered = true
			<-leave
		})
		client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
			t.Errorf("called with %v", s)
		})
		start(t, client)
		synctest.Wait()
		if !entered {
			t.Error("the first listener is not called")
		}
		wantErr(t, "Close", client.Close(), framework.ErrCloseTimeout)
		close(leave)
		synctest.Wait()
	})
}

// A second Close from a callback, while the first waits for that callback, must not make them wait for each
// other.
func TestCloseDoesNotWaitForOtherClients(t *testing.T) {
	t.Parallel()
	const wait = 200 * time.Millisecond
	client, err := framework.New(testenv.ConnectString(t), framework.WithMaxCloseWait(wait))
	if err != nil {
		t.Fatal(err)
	}
	inside := make(chan error, 1)
	client.AddCuratorListener(func(_ context.Context, ev callbacks.Event) {
		if ev.Type == callbacks.Closing {
			inside <- client.Close()
		}
	})
	start(t, client)
	took(t, 2*wait+soon, "both", func() {
		wantErr(t, "Close", client.Close(), framework.ErrCloseTimeout)
		wantErr(t, "Close in the listener", receive(t, inside), framework.ErrCloseTimeout)
	})
}

// In Java: TestFrameworkEdges.testQuickClose.
func TestCloseWhileConnectingReturns(t *testing.T) {
	t.Parallel()
	connect := testenv.ConnectString(t)
	for range 50 {
		client := startClient(t, connect)
		_, err := client.CheckExists().ForPath(testenv.Context(t), "/") // has begun to connect
		if err != nil && !errors.Is(err, framework.ErrClosed) {
			t.Fatal(err)
		}
		closeClient(t, client)
		closeClient(t, startClient(t, connect)) // has not
	}
}
