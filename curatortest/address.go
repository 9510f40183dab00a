package curatortest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/gocurator/curator/internal/zkserver"
)

// listenAddrs returns the address that each of n servers listens on.
func (o *serverOptions) listenAddrs(n int) ([]string, error) {
	given := o.addrs
	if given == nil {
		given = []string{loopback + ":0"}
	}
	for _, addr := range given {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("curatortest: %w", err)
		}
	}
	switch {
	case o.addrs != nil && o.inMemory:
		return nil, errors.New("curatortest: WithAddr does not go with WithoutPort")
	case len(given) == 0:
		return nil, errors.New("curatortest: no address")
	case len(given) == n:
		return given, nil
	case len(given) > 1:
		return nil, fmt.Errorf("curatortest: %d addresses for %s", len(given), servers(n))
	}
	if _, port, _ := net.SplitHostPort(given[0]); port != "0" {
		return nil, fmt.Errorf("curatortest: one address, %s, for %s: each needs its own, or port 0", given[0], servers(n))
	}
	addrs := make([]string, n)
	for i := range addrs {
		addrs[i] = given[0]
	}
	return addrs, nil
}

func servers(n int) string {
	if n == 1 {
		return "1 server"
	}
	return fmt.Sprintf("%d servers", n)
}

// dialable returns the address by which clients reach a server that listens on addr. Not every system can connect to a
// wildcard, and no other machine can.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort(loopback, port)
	}
	return addr
}

// The addresses in memory belong to the network that is reserved for documentation. A client needs no name server for
// them, and a dial over the real network reaches no machine.
const (
	memoryNetwork      = "192.0.2."
	memoryHosts        = 254
	memoryClientPort   = 2181
	memoryQuorumPort   = 2888
	memoryElectionPort = 3888
)

// memoryAddr is the address of the ith server in memory, from 0 on.
func memoryAddr(i int) string {
	return net.JoinHostPort(memoryNetwork+strconv.Itoa(1+i%memoryHosts), strconv.Itoa(memoryClientPort+i/memoryHosts))
}

// wildcard is Apache ZooKeeper's text for a server that listens on all interfaces.
const wildcard = "0.0.0.0"

// addressesOf returns the addresses of servers that listen, in the form of an ensemble's configuration.
func addressesOf(servers []*Server) ([]zkserver.Address, error) {
	addresses := make([]zkserver.Address, len(servers))
	used := map[int]bool{} // ports of this machine
	for i, s := range servers {
		a := &addresses[i]
		listening := s.faults.addr()
		if listening == "" {
			listening = s.Addr()
		}
		var port string
		var err error
		if a.ClientHost, port, err = net.SplitHostPort(listening); err != nil {
			return nil, err
		}
		if net.ParseIP(a.ClientHost).IsUnspecified() {
			a.ClientHost = wildcard
		}
		if a.ClientPort, err = strconv.Atoi(port); err != nil {
			return nil, err
		}
		if a.Host, _, err = net.SplitHostPort(s.Addr()); err != nil {
			return nil, err
		}
		used[a.ClientPort] = true
	}
	for i, s := range servers {
		a := &addresses[i]
		if s.faults.addr() == "" {
			a.QuorumPort, a.ElectionPort = memoryQuorumPort+i/memoryHosts, memoryElectionPort+i/memoryHosts
			continue
		}
		for _, port := range []*int{&a.QuorumPort, &a.ElectionPort} {
			for *port = ownPorts.next(); used[*port]; {
				*port = ownPorts.next()
			}
			used[*port] = true
		}
	}
	return addresses, nil
}

// DialTimeout is [Server.DialContext] for zk.WithDialer of go-zookeeper. It does not wait.
func (s *Server) DialTimeout(_, _ string, _ time.Duration) (net.Conn, error) {
	return s.faults.connect(context.Background())
}

// DialContext connects to the server of the cluster with this address, without the network. It is for
// framework.WithDialer, and works within a bubble of testing/synctest. If no server has the address, the error is that
// of a refused connection.
func (c *Cluster) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	for _, s := range c.servers {
		if s.Addr() == address {
			return s.DialContext(ctx, network, address)
		}
	}
	return nil, &net.OpError{
		Op: "dial", Net: pipeNetwork, Addr: pipeAddr{},
		Err: fmt.Errorf("no server at %s: %w", address, os.NewSyscallError("connect", syscall.ECONNREFUSED)),
	}
}

// DialTimeout is [Cluster.DialContext] for zk.WithDialer of go-zookeeper. It does not wait.
func (c *Cluster) DialTimeout(network, address string, _ time.Duration) (net.Conn, error) {
	return c.DialContext(context.Background(), network, address)
}
