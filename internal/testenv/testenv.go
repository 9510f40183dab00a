// Package testenv gives the tests of all packages a ZooKeeper server: one for each test binary, and a part of its tree
// for each test. It is the in-process server of package curatortest, or Apache ZooKeeper with CURATOR_TEST_SERVER=real,
// as in the second pass of make test. The tests are the same.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gocurator/curator/curatortest"
)

// connectVariable names the environment variable with a server of one's own, or the servers of an ensemble, separated
// by commas.
const connectVariable = "ZOOKEEPER_CONNECT"

var shared struct {
	sync.Mutex
	options []curatortest.RealOption
	server  Instance
	err     error
}

// Main runs the tests of a package and fails if they leave a goroutine. The options are for Apache ZooKeeper.
func Main(m *testing.M, opts ...curatortest.RealOption) {
	shared.options = opts
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Server returns the server of this test binary.
func Server(tb testing.TB) Instance {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = newInstance(shared.options...)
	}
	if shared.err != nil {
		tb.Fatalf("this test needs a ZooKeeper server: %v", shared.err)
	}
	return shared.server
}

// Addr returns host and port of a server: that of the environment, which may be several with commas between them, or
// that of this test binary.
func Addr(tb testing.TB) string {
	tb.Helper()
	if addr := os.Getenv(connectVariable); addr != "" {
		return addr
	}
	return Server(tb).Addr()
}

var chroots atomic.Int64

// ConnectString returns a connect string whose chroot is the test's own; it is removed when the test ends.
func ConnectString(tb testing.TB) string {
	tb.Helper()
	return Addr(tb) + Chroot(tb)
}

// Chroot creates a node for the test and returns its path; it is removed when the test ends.
func Chroot(tb testing.TB) string {
	tb.Helper()
	name := strings.NewReplacer("/", "-", " ", "-").Replace(tb.Name())
	root := fmt.Sprintf("/t-%s-%d-%d", name, os.Getpid(), chroots.Add(1))
	conn := Raw(tb)
	if _, err := conn.Create(root, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil {
		tb.Fatalf("create %s: %v", root, err)
	}
	tb.Cleanup(func() { // before the connection of Raw is closed
		if err := deleteTree(conn, root); err != nil {
			tb.Errorf("delete %s: %v", root, err)
		}
	})
	return root
}

func deleteTree(conn *zk.Conn, root string) error {
	for {
		err := conn.Delete(root, -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !errors.Is(err, zk.ErrNotEmpty) {
			return err
		}
		children, _, err := conn.Children(root)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		for _, child := range children {
			if err := deleteTree(conn, path.Join(root, child)); err != nil {
				return err
			}
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// raws has the connection of Raw of each test that runs.
var raws sync.Map

// Raw returns the test's connection of the plain library to the same server, at its root.
func Raw(tb testing.TB) *zk.Conn {
	tb.Helper()
	if conn, ok := raws.Load(tb); ok {
		return conn.(*zk.Conn) //nolint:forcetypeassert // raws has nothing else
	}
	servers := strings.Split(Addr(tb), ",")
	conn, events, err := zk.Connect(servers, 30*time.Second,
		zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithDialer(DialPlain))
	if err != nil {
		tb.Fatal(err)
	}
	raws.Store(tb, conn)
	tb.Cleanup(func() {
		raws.Delete(tb)
		conn.Close()
		for range events {
			continue // until its goroutines have ended
		}
	})
	return conn
}

// Children returns the sorted names of a node's children, none if there is no such node. The path is from the root of
// the server. It asks again while the connection is lost.
func Children(tb testing.TB, node string) (names []string) {
	tb.Helper()
	conn := Raw(tb)
	Eventually(tb, func() bool {
		var err error
		names, _, err = conn.Children(node)
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return true
		case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrSessionExpired):
			return false
		}
		tb.Fatalf("children of %s: %v", node, err)
		return true
	}, "the children of "+node)
	slices.Sort(names)
	return names
}

// limit bounds every test that uses Context or Eventually. It is for tests that hang: a very busy machine must not
// reach it.
const limit = 5 * time.Minute

// Context returns a context for a test.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	tb.Cleanup(cancel)
	return ctx
}

// InTime returns how long something may take that takes no longer than d. With Apache ZooKeeper the time is real, and
// goes on while the machine does not get on: it once stood still for six seconds. In virtual time d is what it is.
func InTime(d time.Duration) time.Duration {
	if Real() {
		return d + 30*time.Second
	}
	return d
}

// Eventually polls cond, for a state of the server that gives no event.
func Eventually(tb testing.TB, cond func() bool, what string) {
	tb.Helper()
	deadline := time.NewTimer(limit / 3)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !cond() {
		select {
		case <-poll.C:
		case <-deadline.C:
			tb.Fatalf("not in time: %s", what)
		}
	}
}
