package framework_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/testenv"
)

// outage ends the connection of client through proxy, and refuses connections until restore.
func outage(proxy faulty) (restore func()) {
	restore = proxy.Faults().RefuseConnects()
	proxy.Faults().CutAll()
	return restore
}

// In Java: TestEnabledSessionExpiredState.testReconnectWithoutExpiration.
func TestStatesOfShortOutage(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client, recorded := connectRecorded(t, connect)
	session := client.Session()
	createEphemeral(t, client, "/mine")
	for range 3 {
		restore := outage(proxy)
		recorded.want(t, suspended)
		if client.IsConnected() {
			t.Error("connected while suspended")
		}
		restore()
		recorded.want(t, reconnected)
		if !client.IsConnected() {
			t.Error("not connected when reconnected")
		}
	}
	if client.Session() != session || session.Context().Err() != nil {
		t.Error("another session")
	}
	if !exists(t, client, "/mine") {
		t.Error("the ephemeral node is gone")
	}
	recorded.end(t, client)
}

// In Java: TestEnabledSessionExpiredState.testLossToReconnect, TestFrameworkEdges.testReconnectAfterLoss.
func TestStatesOfLongOutage(t *testing.T) {
	t.Parallel()
	onOwnServer(t, func(t *testing.T, server testenv.Instance, dial framework.Option) {
		client, recorded := connectRecorded(t, server.ConnectString(), dial,
			framework.WithSessionTimeout(testenv.SessionTimeout))
		session := client.Session()
		createEphemeral(t, client, "/mine")
		for range 2 {
			must(t, server.Stop())
			recorded.want(t, suspended, lost)
			if client.IsConnected() {
				t.Error("connected while lost")
			}
			<-session.Context().Done()
			wantErr(t, "cause", context.Cause(session.Context()), framework.ErrSessionLost)
			must(t, server.Restart())
			recorded.want(t, reconnected)
			next := client.Session()
			if next == session || next.ID() == session.ID() || next.Context().Err() != nil {
				t.Errorf("session %#x after %#x: %v", next.ID(), session.ID(), next.Context().Err())
			}
			session = next
		}
		testenv.Eventually(t, func() bool { return !exists(t, client, "/mine") }, "the old session ends")
		recorded.end(t, client)
	})
}

// In Java: TestEnabledSessionExpiredState.testKillSession, TestFrameworkEdges.testSessionKilled.
func TestStatesOfExpiredSession(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client, recorded := connectRecorded(t, connect)
	session := client.Session()
	createEphemeral(t, client, "/mine")
	seen := make(chan zk.Event, 100)
	watcher := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) { seen <- ev })
	if _, err := client.CheckExists().UsingWatcher(watcher).ForPath(testenv.Context(t), "/other"); err != nil {
		t.Fatal(err)
	}

	restore := outage(proxy)
	recorded.want(t, suspended)
	expire(t, client)
	restore()
	recorded.want(t, lost, reconnected)

	wantErr(t, "cause", context.Cause(session.Context()), framework.ErrSessionLost)
	if next := client.Session(); next.ID() == session.ID() || next.Context().Err() != nil {
		t.Errorf("session %#x after %#x: %v", next.ID(), session.ID(), next.Context().Err())
	}
	if exists(t, client, "/mine") {
		t.Error("the ephemeral node of the old session is there")
	}
	for _, want := range []zk.State{zk.StateDisconnected, zk.StateExpired} {
		if ev := receive(t, seen); ev.Type != zk.EventSession || ev.State != want {
			t.Errorf("watcher gets %v, want state %v", ev, want)
		}
	}
	create(t, client, "/other", "")
	recorded.end(t, client)
	if len(seen) > 0 {
		t.Errorf("watcher gets %v after the end of its session", <-seen)
	}
}

// Without a proxy the client may take its session back a few times before it is closed: each time is one more
// outage, and nothing else is left out or added.
func TestStatesOfKilledSession(t *testing.T) {
	t.Parallel()
	client, recorded := connectRecorded(t, testenv.ConnectString(t))
	for range 5 {
		expire(t, client)
		recorded.want(t, suspended)
		state := receive(t, recorded)
		for state == reconnected {
			recorded.want(t, suspended)
			state = receive(t, recorded)
		}
		if state != lost {
			t.Fatalf("state %v, want LOST", state)
		}
		recorded.want(t, reconnected)
	}
	recorded.end(t, client)
}

// In Java: TestEnabledSessionExpiredState.testResetCausesLost,
// TestFrameworkEdges.testInjectSessionExpiration.
func TestResetLeavesSessionToItsTimeout(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, _ testenv.Place, connect string, dial framework.Option) {
		client, recorded := connectRecorded(t, connect, dial, framework.WithSessionTimeout(3*time.Second))
		session := client.Session()
		createEphemeral(t, client, "/mine")
		must(t, client.Reset())
		wantErr(t, "cause", context.Cause(session.Context()), framework.ErrSessionLost)
		recorded.want(t, lost, reconnected)
		if client.SessionID() == session.ID() {
			t.Error("the same session")
		}
		if !exists(t, client, "/mine") {
			t.Error("the old session is closed, want it to time out")
		}
		testenv.Eventually(t, func() bool { return !exists(t, client, "/mine") }, "the old session times out")
		recorded.end(t, client)
	})
}

func TestResetWithoutConnectionIsLostOnce(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	restore := proxy.Faults().RefuseConnects()
	client := newClient(t, connect)
	recorded := record(client)
	start(t, client)
	recorded.want(t, suspended)
	for range 3 {
		must(t, client.Reset())
	}
	recorded.want(t, lost) // once
	restore()
	recorded.want(t, connected)
	recorded.end(t, client)
}

// In Java: TestNeverConnected; 01b6066f.
func TestStatesWithoutFirstConnection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fail func(f *curatortest.Faults) (restore func())
	}{
		{"refused", (*curatortest.Faults).RefuseConnects},
		{"accepted and never answered", (*curatortest.Faults).AcceptSilently},
		{"accepted and dropped", func(f *curatortest.Faults) func() {
			return f.Add(curatortest.Rule{Ops: []string{"connect"}, Action: curatortest.CutBefore}).Remove
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
				restore := tt.fail(proxy.Faults())
				client := newClient(t, connect, dial, framework.WithSessionTimeout(testenv.SessionTimeout))
				recorded := record(client)
				start(t, client)
				recorded.want(t, suspended, lost)
				if client.Session() != nil {
					t.Error("a session")
				}
				restore()
				recorded.want(t, connected)
				recorded.end(t, client)
			})
		})
	}
}

// In Java: TestFrameworkBackground.testListenerConnectedAtStart, C-72.
func TestStateListenerGetsConnectedFirst(t *testing.T) {
	t.Parallel()
	for range 20 {
		inVirtualTime(t, func(t *testing.T, _ testenv.Place, connect string, dial framework.Option) {
			client := newClient(t, connect, dial)
			recorded := record(client)
			start(t, client)
			if testenv.Real() {
				recorded.want(t, connected)
			} else if got := receive(t, recorded); got != connected {
				t.Errorf("state %v, want CONNECTED", got)
			}
			recorded.end(t, client)
		})
	}
}

// In Java: TestConnectionStateManager, C-460.
func TestExpirationPercentHastensLoss(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client, recorded := connectRecorded(t, connect, dial,
			framework.WithSessionTimeout(5*time.Second), framework.WithSimulatedSessionExpirationPercent(30))
		began := time.Now()
		restore := outage(proxy)
		recorded.want(t, suspended, lost)
		if d := time.Since(began); d < 1400*time.Millisecond || d > 2*time.Second && !testenv.Real() {
			t.Errorf("lost after %v, want 1.5 s: 30 percent of 5 s", d)
		}
		restore()
		recorded.want(t, reconnected)
		recorded.end(t, client)
	})
}

// The percentage is of the time without a connection: a client that was idle before loses nothing.
func TestExpirationPercentLeavesTimeToReconnect(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client, recorded := connectRecorded(t, connect, dial,
			framework.WithSessionTimeout(5*time.Second), framework.WithSimulatedSessionExpirationPercent(10))
		session := client.Session()
		pass(t, 700*time.Millisecond) // the next ping is at a third of the timeout
		proxy.Faults().CutAll()
		recorded.want(t, suspended, reconnected)
		if client.Session() != session {
			t.Error("another session")
		}
		recorded.end(t, client)
	})
}

// GH-1248: a percentage of a long timeout must not overflow.
func TestExpirationPercentOfLongTimeoutDoesNotOverflow(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client, recorded := connectRecorded(t, connect, dial,
			framework.WithSessionTimeout(24*24*time.Hour), framework.WithSimulatedSessionExpirationPercent(99))
		restore := outage(proxy)
		recorded.want(t, suspended)
		pass(t, 100*time.Millisecond)
		restore()
		recorded.want(t, reconnected)
		recorded.end(t, client)
	})
}

// In Java: client.TestBackgroundStates, and C-525: what gives up late does not bring LOST back.
func TestStatesUnchangedByFailedOperations(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client, recorded := connectRecorded(t, connect, dial,
			framework.WithSessionTimeout(testenv.SessionTimeout), framework.WithConnectionTimeout(100*time.Millisecond))
		restore := outage(proxy)
		results := newEvents()
		for range 3 {
			must(t, client.GetData().InBackground(results.callback).ForPath(testenv.Context(t), "/"))
		}
		recorded.want(t, suspended)
		for range 3 {
			wantErr(t, "get data", receive(t, results).Err, framework.ErrConnectionLoss)
		}
		recorded.want(t, lost)
		for range 3 {
			must(t, client.GetData().InBackground(results.callback).ForPath(testenv.Context(t), "/"))
		}
		restore()
		recorded.want(t, reconnected)
		for range 3 {
			receive(t, results)
		}
		recorded.end(t, client)
	})
}

func TestStateListenersGetAllStatesInOrder(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client := newClient(t, connect, dial, framework.WithSessionTimeout(testenv.SessionTimeout))
		entered, leave := make(chan struct{}), make(chan struct{})
		slow := make(states, 100)
		client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
			if s == connected {
				close(entered)
				<-leave
			}
			slow <- s
		})
		start(t, client)
		<-entered
		for range 3 { // while the listener is at its first state
			session := client.Session()
			restore := outage(proxy)
			<-session.Context().Done() // no listener is needed for that
			restore()
			awaitConnected(t, client)
			testenv.Eventually(t, func() bool { return client.Session() != session }, "the next session")
		}
		close(leave)
		slow.want(t, connected)
		for range 3 {
			slow.want(t, suspended, lost, reconnected)
		}
		slow.end(t, client)
	})
}

func TestStateListenerRemovedFromWithinGetsNoState(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client := newClient(t, connect)
	once := make(states, 10)
	var remove func()
	remove = client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		once <- s
		remove()
		remove() // again: nothing
	})
	removed := make(states, 10)
	var removeOther func()
	client.AddConnectionStateListener(func(context.Context, framework.ConnectionState) { removeOther() })
	removeOther = client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) { removed <- s })
	recorded := record(client)
	start(t, client)
	recorded.want(t, connected)
	proxy.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	recorded.end(t, client)
	receive(t, once) // not always "connected": see want
	once.none(t)
	removed.none(t)
	if n := hook.StateListeners(client); n != 2 {
		t.Errorf("%d listeners left, want 2", n)
	}
}

func TestStateListenerPanicIsReported(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client := newClient(t, connect)
	unhandled := make(chan framework.UnhandledError, 10)
	client.AddUnhandledErrorListener(func(_ context.Context, e framework.UnhandledError) {
		unhandled <- e
		panic("in the last resort")
	})
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		panic(s.String() + " is too much")
	})
	recorded := record(client)
	start(t, client)
	recorded.want(t, connected)
	proxy.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	recorded.end(t, client)
	for i, want := range []string{"CONNECTED", "SUSPENDED", "RECONNECTED"} {
		e := receive(t, unhandled)
		if i == 0 && strings.Contains(e.Err.Error(), "SUSPENDED is too much") { // not always "connected": see want
			e = receive(t, unhandled)
		}
		if !strings.Contains(e.Err.Error(), want+" is too much") {
			t.Errorf("unhandled error %q, want %s", e.Err, want)
		}
	}
}

func TestStatesNotDelayedByBlockedCallback(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, proxy testenv.Place, connect string, dial framework.Option) {
		client, recorded := connectRecorded(t, connect, dial, framework.WithSessionTimeout(testenv.SessionTimeout))
		leave := make(chan struct{})
		err := client.Sync().InBackground(func(context.Context, callbacks.Event) { <-leave }).
			ForPath(testenv.Context(t), "/")
		if err != nil {
			t.Fatal(err)
		}
		restore := outage(proxy)
		recorded.want(t, suspended, lost)
		restore()
		recorded.want(t, reconnected)
		if exists(t, client, "/a") { // the foreground works too
			t.Error("/a exists")
		}
		close(leave)
		recorded.end(t, client)
	})
}

// TestBlockUntilConnected has the cases of Java's test of that name.
func TestBlockUntilConnected(t *testing.T) {
	t.Parallel()
	t.Run("server is there", func(t *testing.T) {
		client := startClient(t, testenv.ConnectString(t))
		awaitConnected(t, client)
		if !client.IsConnected() {
			t.Error("not connected")
		}
		awaitConnected(t, client) // again: at once
	})
	t.Run("server comes later", func(t *testing.T) {
		proxy, connect := newProxy(t)
		restore := proxy.Faults().RefuseConnects()
		client := newClient(t, connect)
		recorded := record(client)
		start(t, client)
		result := make(chan error, 1)
		go func() { result <- client.BlockUntilConnected(testenv.Context(t)) }()
		recorded.want(t, suspended)
		select {
		case err := <-result:
			t.Errorf("returned %v without a connection", err)
		default:
		}
		restore()
		if err := receive(t, result); err != nil {
			t.Error(err)
		}
	})
	t.Run("server never comes", func(t *testing.T) {
		client := startClient(t, nowhere, framework.WithConnectionTimeout(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		took(t, soon, "BlockUntilConnected", func() {
			wantErr(t, "BlockUntilConnected", client.BlockUntilConnected(ctx), context.DeadlineExceeded)
		})
	})
	t.Run("canceled", func(t *testing.T) {
		client := startClient(t, nowhere)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- client.BlockUntilConnected(ctx) }()
		cancel()
		wantErr(t, "BlockUntilConnected", receive(t, result), context.Canceled)
	})
	t.Run("connection is lost and comes back", func(t *testing.T) {
		proxy, connect := newProxy(t)
		client := newClient(t, connect)
		recorded := record(client)
		start(t, client)
		awaitConnected(t, client)
		recorded.want(t, connected)
		restore := outage(proxy)
		recorded.want(t, suspended)
		result := make(chan error, 1)
		go func() { result <- client.BlockUntilConnected(testenv.Context(t)) }()
		restore()
		if err := receive(t, result); err != nil {
			t.Error(err)
		}
	})
	t.Run("client is closed", func(t *testing.T) {
		client := newClient(t, nowhere)
		recorded := record(client)
		start(t, client)
		result := make(chan error, 1)
		go func() { result <- client.BlockUntilConnected(testenv.Context(t)) }()
		recorded.want(t, suspended)
		closeClient(t, client)
		wantErr(t, "BlockUntilConnected", receive(t, result), framework.ErrClosed)
	})
	t.Run("in a tight loop", func(t *testing.T) { // C-218
		connect := testenv.ConnectString(t)
		for i := range 50 {
			client := startClient(t, connect)
			awaitConnected(t, client)
			if !client.IsConnected() || client.SessionID() == 0 {
				t.Fatalf("round %d: not connected", i)
			}
			if _, err := client.CheckExists().ForPath(testenv.Context(t), "/"); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			closeClient(t, client)
		}
	})
}

func TestStateNames(t *testing.T) {
	for s, want := range map[interface{ String() string }]string{
		framework.Latent: "LATENT", framework.Started: "STARTED", framework.Stopped: "STOPPED",
		connected: "CONNECTED", suspended: "SUSPENDED", reconnected: "RECONNECTED", lost: "LOST",
		readOnly: "READ_ONLY", framework.ConnectionState(0): "NONE",
	} {
		if got := s.String(); got != want {
			t.Errorf("%#v is named %q, want %q", s, got, want)
		}
	}
}

func TestErrorPolicies(t *testing.T) {
	tests := []struct {
		state             framework.ConnectionState
		connected         bool
		standard, session bool
	}{
		{connected, true, false, false},
		{suspended, false, true, false},
		{reconnected, true, false, false},
		{lost, false, true, true},
		{readOnly, true, false, false},
	}
	for _, tt := range tests {
		if got := tt.state.IsConnected(); got != tt.connected {
			t.Errorf("%v: connected is %v", tt.state, got)
		}
		if got := (framework.StandardErrorPolicy{}).IsErrorState(tt.state); got != tt.standard {
			t.Errorf("%v: an error of the standard policy is %v", tt.state, got)
		}
		if got := (framework.SessionErrorPolicy{}).IsErrorState(tt.state); got != tt.session {
			t.Errorf("%v: an error of the session policy is %v", tt.state, got)
		}
	}
	client := newClient(t, nowhere)
	if _, ok := client.ConnectionStateErrorPolicy().(framework.StandardErrorPolicy); !ok {
		t.Error("the default is another policy")
	}
	client = newClient(t, nowhere, framework.WithConnectionStateErrorPolicy(framework.SessionErrorPolicy{}))
	if _, ok := client.ConnectionStateErrorPolicy().(framework.SessionErrorPolicy); !ok {
		t.Error("the policy given is ignored")
	}
}
