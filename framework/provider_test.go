package framework_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// provider is an ensemble provider that records the servers that it gets.
type provider struct {
	framework.EnsembleProvider
	keepSession bool

	mu       sync.Mutex
	recorded []string
}

func newProvider(connect string, keepSession bool) *provider {
	return &provider{EnsembleProvider: framework.FixedEnsemble(connect), keepSession: keepSession}
}

func (p *provider) UpdateServerListEnabled() bool { return p.keepSession }

func (p *provider) SetConnectionString(s string) {
	p.mu.Lock()
	p.recorded = append(p.recorded, s)
	p.mu.Unlock()
	p.EnsembleProvider.SetConnectionString(s)
}

func (p *provider) hasTold() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recorded
}

// In Java: ensemble.TestEnsembleProvider; C-551.
func TestEnsembleProviderChangeMovesClient(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		keepSession bool
		chroot      string // below that of the test
		want        []framework.ConnectionState
	}{
		{"with the session", true, "", []framework.ConnectionState{reconnected}},
		{"without it", false, "", []framework.ConnectionState{lost, reconnected}},
		{"to another chroot", true, "/other", []framework.ConnectionState{lost, reconnected}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			first, connect := newProxy(t)
			second := proxyTo(t, testenv.Addr(t))
			chroot := chrootOf(connect)
			create(t, connectClient(t, testenv.Addr(t)+chroot), "/other", "")
			servers := newProvider(connect, tt.keepSession)
			client, recorded := connectRecorded(t, "", framework.WithEnsembleProvider(servers))
			session := client.SessionID()

			servers.SetConnectionString(second.Addr() + chroot + tt.chroot) // counts from the next event on
			first.Faults().CutAll()
			recorded.want(t, suspended)
			recorded.want(t, tt.want...)
			if same := client.SessionID() == session; same != (len(tt.want) == 1) {
				t.Errorf("the same session: %v", same)
			}
			if first.Faults().Connections() != 0 || second.Faults().Connections() != 1 {
				t.Errorf("%d and %d connections", first.Faults().Connections(), second.Faults().Connections())
			}
			create(t, client, "/new", "")
			if server := newTree(t); !server.exists(chroot + tt.chroot + "/new") {
				t.Error("the new node is not where it belongs")
			}
			second.Faults().CutAll() // the string is not new any more
			recorded.want(t, suspended, reconnected)
			recorded.end(t, client)
		})
	}
}

// In Java: TestEnsembleProvider.testAfterSessionExpiration.
func TestEnsembleProviderChangeAfterLossMovesClient(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		servers := newProvider(one.Addr()+chroot, true)
		client, recorded := connectRecorded(t, "", framework.WithEnsembleProvider(servers),
			framework.WithDialer(one.DialContext), framework.WithSessionTimeout(testenv.SessionTimeout))
		outage(one) // for good
		recorded.want(t, suspended, lost)
		servers.SetConnectionString(two.Addr() + chroot)
		recorded.want(t, reconnected)
		recorded.end(t, client)
	})
}

func TestEnsembleProviderInvalidChangeIsIgnored(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	servers := newProvider(connect, true)
	client, recorded := connectRecorded(t, "", framework.WithEnsembleProvider(servers))
	servers.SetConnectionString("h:0")
	proxy.Faults().CutAll()
	recorded.want(t, suspended, reconnected)
	must(t, client.Reset())
	recorded.want(t, lost, reconnected)
	recorded.end(t, client)
}

func TestTrackerOfStandaloneServer(t *testing.T) {
	t.Parallel()
	t.Run("on", func(t *testing.T) {
		proxy, connect := newProxy(t)
		servers := newProvider(connect, true)
		client := connectClient(t, "", framework.WithEnsembleProvider(servers), framework.WithEnsembleTracker())
		testenv.Eventually(t, func() bool { return requests(proxy, "getData") > 0 }, "the configuration is read")
		fence(t, client)
		if diff := cmp.Diff([]string(nil), servers.hasTold()); diff != "" {
			t.Errorf("servers (-want +got):\n%s", diff)
		}
	})
	t.Run("off", func(t *testing.T) {
		proxy, connect := newProxy(t)
		client := connectClient(t, connect)
		fence(t, client)
		if n := requests(proxy, "getData"); n != 0 {
			t.Errorf("the configuration is read %d times", n)
		}
		if config := client.CurrentConfig(); config != nil {
			t.Errorf("configuration %q", config)
		}
	})
}

// The configuration is read with the first connection, also when that takes longer than operations are tried.
func TestTrackerReadsOnFirstConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client, restore := refused(t)
		start(t, client)
		// Begun after the tracker's, and tried as long.
		_, err := client.CheckExists().ForPath(t.Context(), "/")
		wantErr(t, "operation", err, framework.ErrConnectionLoss)
		restore()
		testenv.Eventually(t, func() bool { return requests(server, "getData") > 0 }, "the configuration is read")
	})
}

// The read at the start fails, and the tracker gets to know that behind the first connection.
func TestTrackerReadsOnFirstConnectionThatOvertakesTheFailureBeforeIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client, restore := refused(t)
		recorded := record(client)
		start(t, client)
		goOn := framework.HoldLibrary(client)
		defer goOn()
		_, err := client.CheckExists().ForPath(t.Context(), "/")
		wantErr(t, "operation", err, framework.ErrConnectionLoss)
		restore()
		recorded.want(t, connected) // the tracker has heard of it before
		goOn()
		testenv.Eventually(t, func() bool { return requests(server, "getData") > 0 }, "the configuration is read")
	})
}

// refused returns a client that tracks its ensemble, which refuses it until restore is called. It runs in a bubble: a
// busy machine may not connect within the connection timeout of the client.
func refused(t *testing.T) (server *curatortest.Server, client *framework.Client, restore func()) {
	t.Helper()
	server = curatortest.NewServerT(t, curatortest.WithoutPort())
	restore = server.Faults().RefuseConnects()
	client = newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
		framework.WithEnsembleTracker(), framework.WithConnectionTimeout(50*time.Millisecond),
		framework.WithRetryPolicy(retry.NTimes(0, 0)))
	return server, client, restore
}

// A read has no answer on a connection that stays.
func TestTrackerReadsAgainAfterFailureOnItsConnection(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: framework.ErrOperationTimeout, Count: 3,
	})
	client := newClient(t, connect, framework.WithEnsembleTracker(), framework.WithRetryPolicy(retry.NTimes(0, 0)))
	recorded := record(client)
	start(t, client)
	testenv.Eventually(t, func() bool { return requests(proxy, "getData") > 3 }, "the configuration is read")
	recorded.want(t, connected) // alone
}

// A namespace is created when it is used, not because the ensemble is tracked.
func TestTrackerCreatesNoNamespace(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	startClient(t, connect, framework.WithEnsembleTracker(), framework.WithNamespace("ns"))
	testenv.Eventually(t, func() bool { return requests(proxy, "getData") > 0 }, "the configuration is read")
	if n := requests(proxy, "createContainer"); n > 0 {
		t.Errorf("%d nodes created", n)
	}
}

// Failures of the tracker itself are not reported.
func TestTrackerFailsSilently(t *testing.T) {
	t.Parallel()
	client := newClient(t, nowhere, framework.WithEnsembleTracker(),
		framework.WithConnectionTimeout(50*time.Millisecond), framework.WithRetryPolicy(retry.NTimes(0, 0)))
	unhandled := make(chan error, 10)
	client.AddUnhandledErrorListener(onUnhandled(unhandled))
	start(t, client)
	_, err := client.CheckExists().ForPath(testenv.Context(t), "/") // tried as long
	wantErr(t, "operation", err, framework.ErrConnectionLoss)
	closeClient(t, client)
	if len(unhandled) > 0 {
		t.Errorf("unhandled error: %v", <-unhandled)
	}
}

func TestTrackerReadsAgainInNextSession(t *testing.T) {
	t.Parallel()
	proxy, connect := newProxy(t)
	client, recorded := connectRecorded(t, connect, framework.WithEnsembleTracker())
	testenv.Eventually(t, func() bool { return requests(proxy, "getData") > 0 }, "the configuration is read")
	proxy.Faults().ResetTrace()
	must(t, client.Reset())
	recorded.want(t, lost, reconnected)
	testenv.Eventually(t, func() bool { return requests(proxy, "getData") > 0 }, "it is read again")
	recorded.end(t, client)
}
