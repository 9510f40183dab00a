package framework_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// nowhere is an address without a server: the port of the discard service.
const nowhere = "127.0.0.1:9"

func TestNewInvalidOptionsFail(t *testing.T) {
	const good = "h1:2181,h2:2181/chroot"
	type options = []framework.Option
	tests := []struct {
		name    string
		connect string
		opts    options
		says    string // part of the error
	}{
		{"no servers", "", nil, "server"},
		{"only a chroot", "/a", nil, "server"},
		{"an empty server", "h1:2181,,h2:2181", nil, "server"},
		{"a port that is no number", "h1:port", nil, `"port"`},
		{"port 0", "h1:0", nil, `"0"`},
		{"a port that is too large", "h1:65536", nil, `"65536"`},
		{"IPv6 without brackets", "fe80::1:2181", nil, "brackets"},
		{"a host with a space", "h 1:2181", nil, "host"},
		{"a chroot that ends in a slash", "h1:2181/a/", nil, "chroot"},
		{"a chroot with an empty name", "h1:2181/a//b", nil, "chroot"},
		{"a relative chroot", "h1:2181/a/../b", nil, "chroot"},
		{"a namespace with a slash in front", good, options{framework.WithNamespace("/a")}, "namespace"},
		{"a namespace with an empty name", good, options{framework.WithNamespace("a//b")}, "namespace"},
		{"a relative namespace", good, options{framework.WithNamespace("..")}, "namespace"},
		{"session timeout 0", good, options{framework.WithSessionTimeout(0)}, "session timeout"},
		{"negative session timeout", good, options{framework.WithSessionTimeout(-time.Second)}, "session timeout"},
		{"session timeout below a millisecond", good, options{framework.WithSessionTimeout(1)}, "session timeout"},
		{
			"session timeout that the protocol cannot say", good,
			options{framework.WithSessionTimeout((math.MaxInt32 + 1) * time.Millisecond)},
			"session timeout",
		},
		{"connection timeout 0", good, options{framework.WithConnectionTimeout(0)}, "connection timeout"},
		{"negative connection timeout", good, options{framework.WithConnectionTimeout(-1)}, "connection timeout"},
		{"negative wait for close", good, options{framework.WithMaxCloseWait(-1)}, "close"},
		{"no buffer", good, options{framework.WithMaxBuffer(0)}, "buffer"},
		{"negative buffer", good, options{framework.WithMaxBuffer(-1)}, "buffer"},
		{"0 percent", good, options{framework.WithSimulatedSessionExpirationPercent(0)}, "percent"},
		{"negative percent", good, options{framework.WithSimulatedSessionExpirationPercent(-1)}, "percent"},
		{"101 percent", good, options{framework.WithSimulatedSessionExpirationPercent(101)}, "percent"},
		{"no retry policy", good, options{framework.WithRetryPolicy(nil)}, "retry policy"},
		{"no ACL provider", good, options{framework.WithACLProvider(nil)}, "ACL provider"},
		{"no compression provider", good, options{framework.WithCompressionProvider(nil)}, "compression"},
		{"no error policy", good, options{framework.WithConnectionStateErrorPolicy(nil)}, "error policy"},
		{"no dialer", good, options{framework.WithDialer(nil)}, "dialer"},
		{"no logger", good, options{framework.WithLogger(nil)}, "logger"},
		{"no TLS configuration", good, options{framework.WithTLS(nil)}, "TLS"},
		{"authorization without a scheme", good, options{framework.WithAuth("", []byte("a:b"))}, "scheme"},
		{"a negative number of retries", good, options{framework.WithRetryPolicy(retry.NTimes(-1, 0))}, "NTimes"},
		{"retries forever without a pause", good, options{framework.WithRetryPolicy(retry.Forever(0))}, "Forever"},
		{
			"a bad policy in another", good,
			options{framework.WithRetryPolicy(retry.SessionFailed(retry.OneTime(-1)))},
			"OneTime",
		},
		{"a bad circuit breaker", good, options{framework.WithCircuitBreaker(retry.Forever(-1))}, "Forever"},
		{
			"connect string and provider", good,
			options{framework.WithEnsembleProvider(framework.FixedEnsemble(good))},
			"provider",
		},
		{
			"a provider of nothing", "",
			options{framework.WithEnsembleProvider(framework.FixedEnsemble(""))},
			"server",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := framework.New(tt.connect, tt.opts...)
			if client != nil {
				t.Error("a client all the same")
			}
			wantErr(t, "New", err, framework.ErrBadArguments)
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q, want it to say %q", err, tt.says)
			}
		})
	}
}

func TestNewReportsAllErrors(t *testing.T) {
	_, err := framework.New("h1:0",
		framework.WithNamespace("/"), framework.WithConnectionTimeout(0), framework.WithRetryPolicy(nil))
	for _, part := range []string{`"0"`, "namespace", "connection timeout", "retry policy"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want it to say %q", err, part)
		}
	}
}

func TestNewUnusualOptionsSucceed(t *testing.T) {
	tests := []struct {
		name    string
		connect string
		opts    []framework.Option
	}{
		{"IPv6", "[::1]:2181,[fe80::1]", nil},
		{"no port", "h1,h2", nil},
		{"chroot /", "h1:2181/", nil},
		{"spaces", " h1:2181 , h2:2181 ", nil},
		{"nil options", "h1", []framework.Option{nil, framework.WithNamespace(""), nil}},
		{"1 percent", "h1", []framework.Option{framework.WithSimulatedSessionExpirationPercent(1)}},
		{"no wait at close", "h1", []framework.Option{framework.WithMaxCloseWait(0)}},
		{"a session of 24 days", "h1", []framework.Option{framework.WithSessionTimeout(24 * 24 * time.Hour)}},
		{"no circuit breaker", "h1", []framework.Option{framework.WithCircuitBreaker(nil)}},
		{"no provider", "h1", []framework.Option{framework.WithEnsembleProvider(nil)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := framework.New(tt.connect, tt.opts...)
			if err != nil {
				t.Fatal(err)
			}
			closeClient(t, client)
		})
	}
}

func TestClientLifeCycle(t *testing.T) {
	client := newClient(t, nowhere)
	wantState := func(want framework.State) {
		t.Helper()
		if got := client.State(); got != want {
			t.Errorf("state %v, want %v", got, want)
		}
	}
	wantState(framework.Latent)
	start(t, client)
	wantState(framework.Started)
	wantErr(t, "second Start", client.Start(), framework.ErrStarted)
	wantState(framework.Started)
	closeClient(t, client)
	wantState(framework.Stopped)
	closeClient(t, client) // again: no error
	wantErr(t, "Start after Close", client.Start(), framework.ErrClosed)
	wantState(framework.Stopped)
}

func TestClientConcurrentStartAndClose(t *testing.T) {
	for range 20 {
		client := newClient(t, nowhere)
		var wg sync.WaitGroup
		started := make(chan error, 4)
		for range cap(started) {
			wg.Go(func() { started <- client.Start() })
		}
		for range 4 {
			wg.Go(func() { closeClient(t, client) })
		}
		wg.Wait()
		close(started)
		n := 0
		for err := range started {
			if err == nil {
				n++
			}
		}
		if n > 1 {
			t.Fatalf("started %d times", n)
		}
	}
}

// Every Close, also one that comes while another is at work, returns when the work is done.
func TestCloseConcurrentWaitsForFirst(t *testing.T) {
	client := connectClient(t, testenv.ConnectString(t))
	inCallback, leave := make(chan struct{}), make(chan struct{})
	var left sync.WaitGroup
	left.Add(1)
	err := client.Sync().InBackground(func(context.Context, callbacks.Event) {
		close(inCallback)
		<-leave
		left.Done()
	}).ForPath(testenv.Context(t), "/")
	if err != nil {
		t.Fatal(err)
	}
	<-inCallback
	closed := make(chan error, 3)
	for range cap(closed) {
		go func() { closed <- client.Close() }()
	}
	select {
	case err := <-closed:
		t.Errorf("Close returned (%v) before the callback", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(leave)
	left.Wait()
	for range cap(closed) {
		if err := receive(t, closed); err != nil {
			t.Error(err)
		}
	}
}

func TestViewSharesLifeCycleOfClient(t *testing.T) {
	client := connectClient(t, testenv.ConnectString(t))
	for name, view := range map[string]*framework.Client{
		"namespace":                     client.UsingNamespace("a"),
		"no namespace":                  client.UsingNamespace(""),
		"watcher-removing":              client.WatcherRemoving().Client,
		"watcher-removing of namespace": client.UsingNamespace("a").WatcherRemoving().UsingNamespace("b"),
	} {
		wantErr(t, name+": Start", view.Start(), framework.ErrView)
		wantErr(t, name+": Close", view.Close(), framework.ErrView)
		if got := view.State(); got != framework.Started {
			t.Errorf("%s: state %v, want that of the client", name, got)
		}
		awaitConnected(t, view)
		if view.SessionID() != client.SessionID() {
			t.Errorf("%s: has another session", name)
		}
	}
	if _, err := client.CheckExists().ForPath(testenv.Context(t), "/"); err != nil {
		t.Errorf("the client is closed: %v", err)
	}
}

func TestOperationOfClientNotRunningFails(t *testing.T) {
	latent := newClient(t, nowhere)
	neverStarted := newClient(t, nowhere)
	closeClient(t, neverStarted)
	closed := startClient(t, nowhere)
	closeClient(t, closed)
	tests := []struct {
		name   string
		client *framework.Client
		want   error
	}{
		{"before Start", latent, framework.ErrNotStarted},
		{"after Close without Start", neverStarted, framework.ErrClosed},
		{"after Close", closed, framework.ErrClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := testenv.Context(t)
			for name, client := range map[string]*framework.Client{
				"client":    tt.client,
				"namespace": tt.client.UsingNamespace("ns"),
				"removing":  tt.client.WatcherRemoving().Client,
			} {
				for _, op := range operations {
					wantErr(t, name+": "+op.name, op.foreground(ctx, client, "/a"), tt.want)
					err := op.background(ctx, client, "/a", func(context.Context, callbacks.Event) {
						t.Errorf("%s: %s: callback of what was not accepted", name, op.name)
					})
					wantErr(t, name+": "+op.name+" in background", err, tt.want)
				}
				wantErr(t, "CreateContainers", client.CreateContainers(ctx, "/a"), tt.want)
				wantErr(t, "BlockUntilConnected", client.BlockUntilConnected(ctx), tt.want)
				wantErr(t, "Reset", client.Reset(), tt.want)
				nothing := func(context.Context) error {
					t.Errorf("%s: a loop has run", name)
					return nil
				}
				wantErr(t, "CallWithRetry", client.CallWithRetry(ctx, nothing), tt.want)
				wantErr(t, "CallInSession", client.CallInSession(ctx, true, nothing), tt.want)
			}
		})
	}
	for name, client := range map[string]*framework.Client{"latent": latent, "closed": closed} {
		if client.IsConnected() || client.SessionID() != 0 || client.Session() != nil {
			t.Errorf("%s: a connection or a session", name)
		}
		if got := client.SessionTimeout(); got != 10*time.Second {
			t.Errorf("%s: session timeout %v, want the requested one", name, got)
		}
		client.WatcherRemoving().RemoveWatchers(t.Context()) // does nothing
	}
}

func TestSessionTimeoutIsNegotiated(t *testing.T) {
	client := connectClient(t, testenv.ConnectString(t), framework.WithSessionTimeout(150*time.Millisecond))
	if got, want := client.SessionTimeout(), 200*time.Millisecond; got != want { // the server's minimum
		t.Errorf("session timeout %v, want %v", got, want)
	}
}

// Before the first session there is none: its context has ended, as that of a session that is lost.
func TestSessionBeforeFirstConnectionHasEnded(t *testing.T) {
	client := newClient(t, nowhere)
	none := client.Session()
	for name, session := range map[string]*framework.Session{"nil": none, "zero": new(framework.Session)} {
		if session.ID() != 0 || session.Context().Err() == nil {
			t.Errorf("%s: session %#x: %v", name, session.ID(), session.Context().Err())
		}
		wantErr(t, name+": cause", context.Cause(session.Context()), framework.ErrSessionLost)
	}
}

func TestSessionOfClosedClientHasEnded(t *testing.T) {
	client := connectClient(t, testenv.ConnectString(t))
	session := client.Session()
	if session.ID() == 0 || session.ID() != client.SessionID() || session.Context().Err() != nil {
		t.Fatalf("session %#x of %#x: %v", session.ID(), client.SessionID(), session.Context().Err())
	}
	closeClient(t, client)
	<-session.Context().Done()
	wantErr(t, "cause", context.Cause(session.Context()), framework.ErrClosed)
	if client.IsConnected() {
		t.Error("connected after Close")
	}
}

// A client whose provider has no servers yet is not started, and may be started again.
func TestStartFailedMayBeRetried(t *testing.T) {
	provider := &failingProvider{EnsembleProvider: framework.FixedEnsemble("")}
	client := newClient(t, "", framework.WithEnsembleProvider(provider))
	wantErr(t, "Start", client.Start(), framework.ErrBadArguments)
	if got := client.State(); got != framework.Latent {
		t.Errorf("state %v, want LATENT", got)
	}
	if provider.open() != 0 {
		t.Error("the provider is not closed")
	}
	_, err := client.CheckExists().ForPath(t.Context(), "/")
	wantErr(t, "operation", err, framework.ErrNotStarted)
	provider.SetConnectionString(testenv.ConnectString(t))
	start(t, client)
	awaitConnected(t, client)
	closeClient(t, client)
	if provider.open() != 0 {
		t.Error("the provider is not closed")
	}
}

func TestEnsembleProviderErrors(t *testing.T) {
	refused := context.DeadlineExceeded // any error will do
	provider := &failingProvider{EnsembleProvider: framework.FixedEnsemble(nowhere), startErr: refused}
	client := newClient(t, "", framework.WithEnsembleProvider(provider))
	wantErr(t, "Start", client.Start(), refused)
	provider.startErr, provider.closeErr = nil, refused
	closing, err := framework.New("", framework.WithEnsembleProvider(provider))
	if err != nil {
		t.Fatal(err)
	}
	start(t, closing)
	wantErr(t, "Close", closing.Close(), refused)
	wantErr(t, "second Close", closing.Close(), refused)
}

// failingProvider counts and fails starts and closes.
type failingProvider struct {
	framework.EnsembleProvider
	mu                 sync.Mutex
	starts, closes     int
	startErr, closeErr error
}

func (p *failingProvider) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.startErr == nil {
		p.starts++
	}
	return p.startErr
}

func (p *failingProvider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closes++
	return p.closeErr
}

func (p *failingProvider) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts - p.closes
}
