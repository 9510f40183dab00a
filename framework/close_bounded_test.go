package framework_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/tracing"
)

// gate blocks callers until it is opened.
type gate struct {
	entered chan struct{}
	open    chan struct{}
	once    sync.Once
}

func newGate() *gate { return &gate{entered: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) enter() {
	g.once.Do(func() { close(g.entered) })
	<-g.open
}

// stuckDriver never returns from an event.
type stuckDriver struct {
	tracing.Discard
	*gate
}

func (d stuckDriver) AddCount(string, int) { d.enter() }

// stuckProvider never returns from some of its methods.
type stuckProvider struct {
	framework.EnsembleProvider
	inClose, inServers *gate
	started            bool
}

func (p *stuckProvider) Start() error {
	p.started = true
	return p.EnsembleProvider.Start()
}

func (p *stuckProvider) ConnectionString() string {
	if p.started && p.inServers != nil {
		select {
		case <-p.inServers.entered:
			p.inServers.enter()
		default:
			p.inServers.once.Do(func() { close(p.inServers.entered) }) // the first call is that of Start
		}
	}
	return p.EnsembleProvider.ConnectionString()
}

func (p *stuckProvider) Close() error {
	if p.inClose != nil {
		p.inClose.enter()
	}
	return p.EnsembleProvider.Close()
}

// stuckPolicy never returns from its decision.
type stuckPolicy struct{ *gate }

func (p stuckPolicy) NewBackOff() backoff.BackOff { return p }
func (p stuckPolicy) Retryable(error) bool        { return true }
func (p stuckPolicy) Reset()                      {}
func (p stuckPolicy) NextBackOff() time.Duration {
	p.enter()
	return backoff.Stop
}

const closeWait = 200 * time.Millisecond

func TestCloseWithBlockedCodeOfProgramIsBounded(t *testing.T) {
	connect := testenv.ConnectString(t)
	tests := map[string]func(t *testing.T, g *gate) *framework.Client{
		"dialer": func(t *testing.T, g *gate) *framework.Client {
			t.Helper()
			return unclosed(t, connect, framework.WithDialer(func(context.Context, string, string) (net.Conn, error) {
				g.enter()
				return nil, net.ErrClosed
			}))
		},
		"resolver": func(t *testing.T, g *gate) *framework.Client {
			t.Helper()
			return unclosed(t, "zk.example:2181", framework.WithResolver(stuckResolver{g}))
		},
		"tracer driver": func(t *testing.T, g *gate) *framework.Client {
			t.Helper()
			return unclosed(t, connect, tracing.WithDriver(stuckDriver{gate: g}))
		},
		"retry policy": func(t *testing.T, g *gate) *framework.Client {
			t.Helper()
			proxy := proxyTo(t, testenv.Addr(t))
			client := unclosed(t, proxy.Addr()+chrootOf(connect), framework.WithRetryPolicy(stuckPolicy{g}))
			awaitConnected(t, client)
			proxy.Faults().BlackHole(curatortest.ToServer)
			must(t, client.Sync().InBackground(nil).ForPath(t.Context(), "/"))
			outage(proxy)
			return client
		},
		"ensemble provider that closes": func(t *testing.T, g *gate) *framework.Client {
			t.Helper()
			close(g.entered)
			g.once.Do(func() {})
			p := &stuckProvider{EnsembleProvider: framework.FixedEnsemble(connect), inClose: g}
			return unclosed(t, "", framework.WithEnsembleProvider(p))
		},
		"ensemble provider in a call": func(t *testing.T, g *gate) *framework.Client {
			t.Helper()
			p := &stuckProvider{EnsembleProvider: framework.FixedEnsemble(connect), inServers: g}
			return unclosed(t, "", framework.WithEnsembleProvider(p))
		},
	}
	for name, enter := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			defer close(g.open)
			client := enter(t, g)
			receiveEnd(t, g.entered)
			if name == "ensemble provider in a call" {
				awaitConnected(t, client) // with the servers that it named at first
			}
			took(t, 3*closeWait+4*time.Second, "Close", func() {
				wantErr(t, "Close", client.Close(), framework.ErrCloseTimeout)
			})
		})
	}
}

type stuckResolver struct{ *gate }

func (r stuckResolver) LookupHost(context.Context, string) ([]string, error) {
	r.enter()
	return nil, net.ErrClosed
}

func (r stuckResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", nil, net.ErrClosed
}

// unclosed returns a client that is started, and that the test closes.
func unclosed(t *testing.T, connect string, opts ...framework.Option) *framework.Client {
	t.Helper()
	opts = append(opts, framework.WithMaxCloseWait(closeWait), framework.WithoutEnsembleTracker())
	client, err := framework.New(connect, opts...)
	must(t, err)
	start(t, client)
	return client
}

// receiveEnd waits until ch is closed.
func receiveEnd(tb testing.TB, ch <-chan struct{}) {
	tb.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		tb.Fatal("waited too long")
	}
}

// startingProvider takes its time to start, and looks at its client meanwhile.
type startingProvider struct {
	framework.EnsembleProvider
	*gate
	client *framework.Client
	closed chan struct{}
}

func (p *startingProvider) Start() error {
	p.client.State()
	p.enter()
	return nil
}

func (p *startingProvider) Close() error {
	close(p.closed)
	return nil
}

func TestCloseDuringStartOfEnsembleProvider(t *testing.T) {
	servers := framework.FixedEnsemble(testenv.ConnectString(t))
	p := &startingProvider{EnsembleProvider: servers, gate: newGate(), closed: make(chan struct{})}
	client, err := framework.New("", framework.WithEnsembleProvider(p))
	must(t, err)
	p.client = client
	started := make(chan error, 1)
	go func() { started <- client.Start() }()
	receiveEnd(t, p.entered)
	wantErr(t, "another Start", client.Start(), framework.ErrStarted)
	must(t, client.Close())
	close(p.open)
	wantErr(t, "Start", receive(t, started), framework.ErrClosed)
	receiveEnd(t, p.closed)
}

// What a driver or a provider asks its client, it is answered.
func TestDriverAndEnsembleProviderMayCallClient(t *testing.T) {
	first, connect := newProxy(t)
	second := proxyTo(t, testenv.Addr(t))
	d := &connectedDriver{recorded: make(chan string, 100)}
	servers := &askingProvider{EnsembleProvider: framework.FixedEnsemble(connect)}
	client := newClient(t, "", framework.WithEnsembleProvider(servers), tracing.WithDriver(d))
	d.client, servers.client = client, client
	recorded := record(client)
	start(t, client)
	recorded.want(t, connected)
	servers.SetConnectionString(second.Addr() + chrootOf(connect))
	first.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	for receive(t, d.recorded) != "connection-string-changed" {
	}
	recorded.end(t, client)
}

type connectedDriver struct {
	tracing.Discard
	client   *framework.Client
	recorded chan string
}

func (d *connectedDriver) AddCount(name string, _ int) {
	d.client.IsConnected()
	d.recorded <- name
}

type askingProvider struct {
	framework.EnsembleProvider
	client *framework.Client
}

func (p *askingProvider) ConnectionString() string {
	if p.client != nil {
		p.client.State()
		p.client.IsConnected()
		p.client.Session()
	}
	return p.EnsembleProvider.ConnectionString()
}
