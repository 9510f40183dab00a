package testenv

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// serverVariable names the environment variable that chooses the server of the tests.
const serverVariable = "CURATOR_TEST_SERVER"

// realServer is its value for Apache ZooKeeper.
const realServer = "real"

// Instance is a server of the tests, of either kind.
type Instance interface {
	Addr() string
	ConnectString() string
	Stop() error
	Kill() error
	Restart() error
	Freeze() error
	Thaw() error
	ExpireSession(sessionID int64) error
	DropConnection(sessionID int64) error
	FourLetterWord(ctx context.Context, word string) (string, error)
	Close() error
}

var (
	_ Instance = (*curatortest.Server)(nil)
	_ Instance = (*curatortest.RealServer)(nil)
)

// Real reports whether the tests run on Apache ZooKeeper.
func Real() bool { return os.Getenv(serverVariable) == realServer }

// sweepInterval is short enough for a test that waits for the end of containers and of nodes with a time to live; by
// default it is a minute.
const sweepInterval = 200 * time.Millisecond

func newInstance(opts ...curatortest.RealOption) (Instance, error) {
	if !Real() {
		return curatortest.NewServer(curatortest.WithSweepInterval(sweepInterval))
	}
	sweeps := []curatortest.RealOption{curatortest.WithSweepInterval(sweepInterval)}
	server, err := curatortest.NewRealServer(append(sweeps, opts...)...)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(server); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

// NewServer returns a server for one test, which may stop it.
func NewServer(tb testing.TB) Instance {
	tb.Helper()
	server, err := newInstance()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	return server
}

// RequireReal is for a test of Apache ZooKeeper itself, or one that needs Java. It skips the test if the tests run on
// the server in memory.
func RequireReal(tb testing.TB) {
	tb.Helper()
	if !Real() {
		tb.Skipf("this test needs Apache ZooKeeper: run make test, which installs it and sets %s=%s", serverVariable,
			realServer)
	}
}
