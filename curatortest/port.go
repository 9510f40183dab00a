package curatortest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// loopback is where servers listen.
const loopback = "127.0.0.1"

// Servers and proxies are given ports below those that systems hand out by themselves (from 32768 on, Linux; from 49152 on,
// others): while one is down, or refuses connections, no connection of somebody's gets its port, nor does a client that
// tries to reach it end up connected with itself.
const (
	firstPort = 15_000
	lastPort  = 32_000
)

// freePorts returns n ports of the loopback interface that nobody uses now.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := listenOn(net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // nothing was accepted; it is open until all are found, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// listenOn listens at addr, host and port; port 0 is one of those above that nobody uses.
func listenOn(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return net.Listen("tcp", addr)
	}
	var failures []error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err == nil {
			return l, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}
