// Package testclient has the clients of tests, and their small helpers.
package testclient

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// New returns a client that is closed at the end of the test. Its session outlasts the delays of a busy machine: a test
// of the end of a session ends it. The ensemble tracker is off, because it would lead a client past a proxy. opts come
// last.
func New(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client, err := framework.New(connect, append([]framework.Option{
		framework.WithSessionTimeout(20 * time.Second),
		framework.WithConnectionTimeout(time.Minute), // a busy machine takes its time to connect,
		framework.WithMaxCloseWait(20 * time.Second), // and to come to an end
		framework.WithRetryPolicy(retry.NTimes(5, 20*time.Millisecond)),
		framework.WithoutEnsembleTracker(),
	}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return client
}

// Start returns a started client.
func Start(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client := New(tb, connect, opts...)
	Must(tb, client.Start())
	return client
}

// Connect returns a connected client.
func Connect(tb testing.TB, connect string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client := Start(tb, connect, opts...)
	Must(tb, client.BlockUntilConnected(testenv.Context(tb)))
	return client
}

// ConnectAt returns a connected client of a place. Its listeners have the connection behind them: one that is added
// later gets changes alone.
func ConnectAt(tb testing.TB, place testenv.Place, chroot string, opts ...framework.Option) *framework.Client {
	tb.Helper()
	client := New(tb, place.Addr()+chroot, append([]framework.Option{
		framework.WithDialer(place.DialContext), framework.WithSessionTimeout(10 * time.Second),
	}, opts...)...)
	connected := make(chan struct{}, 1)
	remove := client.AddConnectionStateListener(func(context.Context, framework.ConnectionState) {
		select {
		case connected <- struct{}{}:
		default:
		}
	})
	Must(tb, client.Start())
	Must(tb, client.BlockUntilConnected(testenv.Context(tb)))
	<-connected
	remove()
	return client
}

// LogTrace logs the end of the trace of a place if the test fails.
func LogTrace(t *testing.T, place testenv.Place) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			trace := place.Faults().Trace()
			t.Logf("%s", curatortest.FormatTrace(trace[max(0, len(trace)-60):]))
		}
	})
}

// Proxy returns a proxy to the server of the tests, and a connect string through it.
func Proxy(tb testing.TB, chroot string) (proxy *curatortest.Proxy, connect string) {
	tb.Helper()
	proxy = curatortest.NewProxyT(tb, testenv.Addr(tb))
	return proxy, proxy.Addr() + chroot
}

// Must ends the test with an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
