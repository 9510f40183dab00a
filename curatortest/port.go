package curatortest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// loopback is where servers listen.
const loopback = "127.0.0.1"

// Servers and proxies get ports below those that systems assign themselves (from 32768 on Linux, from 49152 on others).
// So no other connection takes the port of a server that is down or refuses connections, and no client that dials it is
// connected with itself. Each process uses the ports one after the other, so the next server gets another one. Apache
// ZooKeeper has ports of its own, because it listens only after a while.
var (
	realPorts = newPorts(15_000, 22_000)
	ownPorts  = newPorts(22_000, 32_000)
)

// ports are the ports from first to before last.
type ports struct {
	first, last int
	given       atomic.Int64 // of them, from a random one on
}

func newPorts(first, last int) *ports {
	p := &ports{first: first, last: last}
	p.given.Store(rand.Int64N(int64(last - first)))
	return p
}

func (p *ports) next() int { return p.first + int(p.given.Add(1)%int64(p.last-p.first)) }

// portTries is the number of ports that are tried.
const portTries = 100

// listen listens at a free port.
func (p *ports) listen(host string) (net.Listener, error) {
	var last error
	for range portTries {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p.next())))
		if err == nil {
			return l, nil
		}
		if last == nil && !canListen(host) {
			return nil, err // another port would fail too
		}
		last = err
	}
	return nil, fmt.Errorf("none of %d ports is free: %w", portTries, last)
}

// canListen reports whether this machine can listen at a host at all.
func canListen(host string) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return false
	}
	l.Close() //nolint:errcheck // nothing was accepted
	return true
}

// freePorts returns n ports of the loopback interface that are free now.
func freePorts(n int) ([]int, error) {
	free := make([]int, 0, n)
	for range n {
		l, err := realPorts.listen(loopback)
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // nothing was accepted; it is open until all are found, so that they differ
		free = append(free, l.Addr().(*net.TCPAddr).Port)
	}
	return free, nil
}

// listenOn listens at addr, host and port; port 0 is a free one.
func listenOn(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return net.Listen("tcp", addr)
	}
	return ownPorts.listen(host)
}
