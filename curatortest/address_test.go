package curatortest_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// The error of a host that does not exist names the address and the reason, once, for a server and for a cluster.
func TestServerAtABadHostSaysSoOnce(t *testing.T) {
	const host = "300.300.300.300"
	addr := net.JoinHostPort(host, "0")
	_, alone := curatortest.NewServer(curatortest.WithAddr(addr))
	_, cluster := curatortest.NewCluster(3, curatortest.WithAddr(addr))
	for name, err := range map[string]error{"server": alone, "cluster": cluster} {
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		text := err.Error()
		if strings.Contains(text, "\n") || !strings.Contains(text, strconv.Quote(addr)) {
			t.Errorf("%s: %s", name, text)
		}
		if n := strings.Count(text, "no such host") + strings.Count(text, "lookup "); n > 2 {
			t.Errorf("%s: the reason %d times: %s", name, n, text)
		}
	}
}

// A server that listens on all interfaces is reached by way of the loopback interface.
func TestServerAtAWildcardGivesAnAddressToDial(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0"} {
		t.Run(addr, func(t *testing.T) {
			server := curatortest.NewServerT(t, curatortest.WithAddr(addr))
			host, _, err := net.SplitHostPort(server.ConnectString())
			must(t, err)
			if host != "127.0.0.1" {
				t.Errorf("at %s", server.ConnectString())
			}
			newSession(t, server.ConnectString()).create(t, "/n", "", 0)
			before := server.Addr()
			must(t, server.Restart())
			newSession(t, server.ConnectString()).wantExists(t, "/n", true)
			if server.Addr() != before {
				t.Errorf("at %s after a restart, not at %s", server.Addr(), before)
			}
		})
	}
}

// freeAddrs are addresses of unused ports.
func freeAddrs(tb testing.TB, n int) []string {
	tb.Helper()
	var addrs []string
	for range n {
		server := curatortest.NewServerT(tb)
		addrs = append(addrs, server.Addr())
		defer closeServer(tb, server)
	}
	return addrs
}

func TestClusterAtFixedPorts(t *testing.T) {
	addrs := freeAddrs(t, 3)
	cluster := curatortest.NewClusterT(t, 3, curatortest.WithAddr(addrs...))
	if want := strings.Join(addrs, ","); cluster.ConnectString() != want {
		t.Errorf("at %s, not %s", cluster.ConnectString(), want)
	}
	newSession(t, addrs[2]).create(t, "/n", "", 0)
}

func TestClusterAtPortZero(t *testing.T) {
	for _, addrs := range [][]string{{"127.0.0.1:0"}, {"127.0.0.1:0", "127.0.0.1:0", "0.0.0.0:0"}} {
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithAddr(addrs...))
		seen := map[string]bool{}
		for _, s := range cluster.Servers() {
			if seen[s.Addr()] {
				t.Errorf("two servers at %s", s.Addr())
			}
			seen[s.Addr()] = true
			newSession(t, s.Addr())
		}
	}
}

func TestAddressesThatDoNotGoWithTheServers(t *testing.T) {
	addrs := freeAddrs(t, 2)
	tests := []struct {
		name    string
		servers int // 0 is NewServer
		opts    []curatortest.ServerOption
		want    string
	}{
		{"one port for a cluster", 3, []curatortest.ServerOption{curatortest.WithAddr(addrs[0])}, "3 servers"},
		{"too few", 3, []curatortest.ServerOption{curatortest.WithAddr(addrs...)}, "2 addresses for 3 servers"},
		{"too many", 0, []curatortest.ServerOption{curatortest.WithAddr(addrs...)}, "2 addresses for 1 server"},
		{"one port twice", 2, []curatortest.ServerOption{curatortest.WithAddr(addrs[0], addrs[0])}, addrs[0]},
		{"none", 0, []curatortest.ServerOption{curatortest.WithAddr()}, "no address"},
		{"no port", 0, []curatortest.ServerOption{curatortest.WithAddr("127.0.0.1")}, "missing port"},
		{
			"in memory too", 0,
			[]curatortest.ServerOption{curatortest.WithAddr(addrs[0]), curatortest.WithoutPort()},
			"WithoutPort",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var server interface{ Close() error }
			var err error
			if tt.servers == 0 {
				server, err = curatortest.NewServer(tt.opts...)
			} else {
				server, err = curatortest.NewCluster(tt.servers, tt.opts...)
			}
			if err == nil {
				t.Error("no error")
				must(t, server.Close())
				return
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v does not say %q in a line", err, tt.want)
			}
		})
	}
}

// TestPlainLibraryInMemory has go-zookeeper itself use a server without the network, in a bubble.
func TestPlainLibraryInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		conn, events, err := zk.Connect([]string{server.Addr()}, time.Minute,
			zk.WithDialer(server.DialTimeout), zk.WithLogger(silent{}))
		must(t, err)
		s := &session{conn, events}
		defer func() {
			conn.Close()
			for range events { // until its goroutines have ended
			}
		}()
		s.await(t, zk.StateHasSession)
		s.create(t, "/mine", "x", zk.FlagEphemeral)
		s.wantData(t, "/mine", "x")
		must(t, server.ExpireSession(s.SessionID()))
		s.await(t, zk.StateExpired)
		s.await(t, zk.StateHasSession)
		s.wantExists(t, "/mine", false)
	})
}

// TestClusterInMemory reaches each server of a cluster by its address.
func TestClusterInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort())
		client := connect(t, cluster.ConnectString(), framework.WithDialer(cluster.DialContext))
		_, err := client.Create().ForPath(t.Context(), "/n", []byte("x"))
		must(t, err)
		for range 2 {
			s, err := cluster.FindConnectionInstance(client.SessionID())
			must(t, err)
			must(t, s.Stop())
			_, err = client.GetData().ForPath(t.Context(), "/n")
			must(t, err)
			must(t, s.Restart())
		}
		seen := map[string]bool{}
		for _, s := range cluster.Servers() {
			host, _, err := net.SplitHostPort(s.Addr())
			must(t, err)
			if seen[s.Addr()] || net.ParseIP(host) == nil {
				t.Errorf("at %s, as another one or as a name", s.Addr())
			}
			seen[s.Addr()] = true
			conn, err := cluster.DialTimeout("tcp", s.Addr(), time.Second)
			must(t, err)
			must(t, conn.Close())
		}
		if conn, err := cluster.DialContext(t.Context(), "tcp", "192.0.2.99:2181"); err == nil {
			t.Error("a server at an address that none has")
			must(t, conn.Close())
		}
	})
}

// TestReadOnlyModeOfAServerAlone: the option would do nothing, because such a server always has its majority.
func TestReadOnlyModeOfAServerAlone(t *testing.T) {
	server, alone := curatortest.NewServer(curatortest.WithReadOnlyMode())
	cluster, one := curatortest.NewCluster(1, curatortest.WithReadOnlyMode())
	for name, err := range map[string]error{"server": alone, "cluster of one": one} {
		if err == nil || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if alone == nil {
		must(t, server.Close())
	}
	if one == nil {
		must(t, cluster.Close())
	}
}

// TestConfigurationOfAnEnsemble: each server has a line with ports that differ, and conf shows the same lines.
func TestConfigurationOfAnEnsemble(t *testing.T) {
	for name, opts := range map[string][]curatortest.ServerOption{
		"network": nil, "memory": {curatortest.WithoutPort()}, "wildcard": {curatortest.WithAddr("0.0.0.0:0")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 3} {
				cluster := curatortest.NewClusterT(t, n, opts...)
				checkConfiguration(t, name == "wildcard", cluster)
			}
		})
	}
	if node, ok := curatortest.NewServerT(t).Node("/zookeeper/config"); !ok || len(node.Data) != 0 {
		t.Errorf("a server alone has the configuration %q", node.Data)
	}
}

func checkConfiguration(t *testing.T, wildcard bool, cluster *curatortest.Cluster) {
	t.Helper()
	node, _ := cluster.Servers()[0].Node("/zookeeper/config")
	lines := strings.Split(string(node.Data), "\n")
	if len(lines) != len(cluster.Servers())+1 || lines[len(lines)-1] != "version=0" || node.Stat.Version != -1 {
		t.Fatalf("%q, %+v", lines, node.Stat)
	}
	used := map[string]bool{}
	for i, s := range cluster.Servers() {
		host, port, err := net.SplitHostPort(s.Addr())
		must(t, err)
		key, value, _ := strings.Cut(lines[i], "=")
		quorum, client, _ := strings.Cut(value, ";")
		parts := strings.Split(quorum, ":")
		if key != fmt.Sprintf("server.%d", i+1) || len(parts) != 4 || parts[0] != host || parts[3] != "participant" {
			t.Fatalf("%q of %s", lines[i], s.Addr())
		}
		if want := net.JoinHostPort(map[bool]string{false: host, true: "0.0.0.0"}[wildcard], port); client != want {
			t.Errorf("%q: clients at %s, not %s", lines[i], client, want)
		}
		for _, p := range []string{parts[1], parts[2], port} {
			if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 || used[host+":"+p] {
				t.Errorf("%q: port %s", lines[i], p)
			}
			used[host+":"+p] = true
		}
		conf, err := s.FourLetterWord(t.Context(), "conf")
		must(t, err)
		for _, want := range []string{
			"clientPort=" + port + "\n",
			fmt.Sprintf("\nserverId=%d\ninitLimit=", i+1),
			"\nelectionAlg=3\nelectionPort=" + parts[2] + "\nquorumPort=" + parts[1] + "\npeerType=0\nmembership: \n" +
				string(node.Data),
		} {
			if !strings.Contains(conf, want) {
				t.Errorf("no %q in\n%s", want, conf)
			}
		}
	}
}
