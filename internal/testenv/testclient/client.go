// Package testclient has the clients of tests, and their small helpers.
package testclient

import (
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
		framework.WithEnsembleTracker(false),
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
