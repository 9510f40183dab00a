package curatortest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// loopback is where servers listen.
const loopback = "127.0.0.1"

// Servers are given ports below those that systems hand out by themselves (from 32768 on, Linux; from 49152 on,
// others): while a server is down, no connection of somebody's gets its port, nor does a client that tries to reach the
// server end up connected with itself.
const (
	firstPort = 15_000
	lastPort  = 32_000
)

// freePorts returns n ports of the loopback interface that nobody uses now.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	var failures []error
	for len(ports) < n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, fmt.Sprint(port)))
		if err != nil {
			if failures = append(failures, err); len(failures) > 100 {
				return nil, errors.Join(failures...)
			}
			continue
		}
		defer l.Close() //nolint:errcheck // nothing was accepted; it is open until all are found, so that they differ
		ports = append(ports, port)
	}
	return ports, nil
}
