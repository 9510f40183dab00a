// Package zk has the file that scripts/peers.sh puts in place of the file of the same name in the tests of
// go-zookeeper, which starts Apache ZooKeeper: the tests then run on the servers of curatortest.
package zk

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// The tests that start a server of Java by themselves name these files.
const (
	_testConfigName   = "zoo.cfg"
	_testMyIDFileName = "myid"
)

// memoryServer is a server in the memory of the test.
type memoryServer struct {
	*curatortest.Server
	cluster *curatortest.Cluster // nil for a server that stands alone
}

// Start starts a server that was stopped. A server of Java takes so long to start that its clients have found another
// one: the tests rely on it, and so it is waited for here.
func (s memoryServer) Start() error {
	if s.cluster != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
		defer cancel()
		if err := s.Eventually(ctx, s.hasNoClients); err != nil {
			return err
		}
	}
	return s.Restart()
}

// hasNoClients reports whether all clients are connected to other servers.
func (s memoryServer) hasNoClients() bool {
	for _, id := range s.Sessions() {
		if at, err := s.cluster.FindConnectionInstance(id); err != nil || at == s.Server {
			return false
		}
	}
	return true
}

// TestServer is a server and its address.
type TestServer struct {
	Port   int
	Srv    memoryServer
	Config ServerConfigServer
}

// TestCluster is one server or an ensemble.
type TestCluster struct {
	Config  ServerConfig
	Servers []TestServer
	close   func() error
}

// StartTestCluster starts one server that stands alone, or an ensemble of more, as the tests configure those of Java.
func StartTestCluster(t *testing.T, size int, _, _ io.Writer) (*TestCluster, error) {
	t.Helper()
	opts := []curatortest.ServerOption{
		curatortest.WithTickTime(DefaultServerTickTime * time.Millisecond),
		// Those of the default configuration of Apache ZooKeeper. TestIntegration_SlowServer has a session outlive four
		// seconds on the network: with the two ticks of its own configuration it fails on Apache ZooKeeper too.
		curatortest.WithSessionTimeouts(4*time.Second, 40*time.Second),
		curatortest.WithSuperUser("super:test"),
	}
	if size == 1 {
		server, err := curatortest.NewServer(opts...)
		if err != nil {
			return nil, err
		}
		tc := &TestCluster{close: server.Close}
		tc.add(t, server, nil)
		return tc, nil
	}
	cluster, err := curatortest.NewCluster(size, opts...)
	if err != nil {
		return nil, err
	}
	tc := &TestCluster{close: cluster.Close}
	for _, server := range cluster.Servers() {
		tc.add(t, server, cluster)
	}
	return tc, nil
}

func (tc *TestCluster) add(t *testing.T, server *curatortest.Server, cluster *curatortest.Cluster) {
	t.Helper()
	host, text, err := net.SplitHostPort(server.Addr())
	requireNoErrorf(t, err, "address of a server")
	port, err := strconv.Atoi(text)
	requireNoErrorf(t, err, "port of a server")
	config := ServerConfigServer{ID: len(tc.Servers) + 1, Host: host}
	tc.Config.ClientPort = port
	tc.Config.Servers = append(tc.Config.Servers, config)
	tc.Servers = append(tc.Servers, TestServer{Port: port, Srv: memoryServer{server, cluster}, Config: config})
}

// Stop ends all servers.
func (tc *TestCluster) Stop() error { return tc.close() }

// Connect connects to one server.
func (tc *TestCluster) Connect(idx int) (*Conn, <-chan Event, error) {
	return Connect([]string{tc.Servers[idx].Srv.Addr()}, sessionTimeout)
}

const sessionTimeout = 15 * time.Second

// ConnectAll connects to any of the servers.
func (tc *TestCluster) ConnectAll() (*Conn, <-chan Event, error) {
	return tc.ConnectAllTimeout(sessionTimeout)
}

// ConnectAllTimeout is ConnectAll with a session timeout.
func (tc *TestCluster) ConnectAllTimeout(timeout time.Duration) (*Conn, <-chan Event, error) {
	return tc.ConnectWithOptions(timeout)
}

// ConnectWithOptions is ConnectAllTimeout with options.
func (tc *TestCluster) ConnectWithOptions(timeout time.Duration, opts ...connOption) (*Conn, <-chan Event, error) {
	addrs := make([]string, len(tc.Servers))
	for i, s := range tc.Servers {
		addrs[i] = s.Srv.Addr()
	}
	return Connect(addrs, timeout, opts...)
}

// StartServer starts the server with an address again.
func (tc *TestCluster) StartServer(addr string) { tc.must(addr, (*curatortest.Server).Restart) }

// StopServer stops the server with an address.
func (tc *TestCluster) StopServer(addr string) { tc.must(addr, (*curatortest.Server).Stop) }

func (tc *TestCluster) must(addr string, do func(*curatortest.Server) error) {
	for _, s := range tc.Servers {
		if strings.HasSuffix(addr, fmt.Sprintf(":%d", s.Port)) {
			if err := do(s.Srv.Server); err != nil {
				panic(err)
			}
			return
		}
	}
	panic("no server " + addr)
}

// StartAllServers starts all servers again, and waits for their clients: those of servers of Java, which take long to
// start, know by then that they had lost the connection.
func (tc *TestCluster) StartAllServers() error {
	for _, s := range tc.Servers {
		if err := s.Srv.Restart(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	first := tc.Servers[0].Srv
	return first.Eventually(ctx, func() bool {
		connections := 0
		for _, s := range tc.Servers {
			connections += s.Srv.Faults().Connections()
		}
		return connections >= len(first.Sessions())
	})
}

// StopAllServers stops all servers.
func (tc *TestCluster) StopAllServers() error {
	for _, s := range tc.Servers {
		if err := s.Srv.Stop(); err != nil {
			return err
		}
	}
	return nil
}

func requireNoErrorf(t *testing.T, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(what, err)...)
	}
}
