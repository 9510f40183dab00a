package curatortest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// loopback is where servers listen.
const loopback = "127.0.0.1"

// Servers and proxies get ports below those that systems assign themselves (from 32768 on Linux, from 49152 on others).
// So no other connection takes the port of a server that is down or refuses connections, and no client that dials it is
// connected with itself. No server of another process takes it either, see [hold]: its clients would be connected with
// that one. Each process uses the ports one after the other, so the next server gets another one. Apache ZooKeeper has
// ports of its own, because it listens only after a while.
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

// longestLeap is how far the next port may be beyond one that is taken.
const longestLeap = 1000

// leap goes on beyond those that another process holds: as it uses them one after the other, they are many in a row.
func (p *ports) leap() { p.given.Add(rand.Int64N(longestLeap)) }

// portTries is the number of ports that are tried.
const portTries = 100

// hold holds a port until it is closed, whether or not somebody listens at it: the UDP port of the same number stays
// bound. Each process that listens at one of these ports holds it first.
func hold(addr string) (io.Closer, error) { return net.ListenPacket("udp", addr) }

// listen listens at a free port, and holds it.
func (p *ports) listen(host string) (l net.Listener, held io.Closer, err error) {
	var last error
	for range portTries {
		addr := net.JoinHostPort(host, strconv.Itoa(p.next()))
		if held, err = hold(addr); err == nil {
			if l, err = net.Listen("tcp", addr); err == nil {
				return l, held, nil
			}
			held.Close() //nolint:errcheck // nothing was sent
		}
		if last == nil && !canListen(host) {
			return nil, nil, err // another port would fail too
		}
		last = err
		p.leap()
	}
	return nil, nil, fmt.Errorf("none of %d ports is free: %w", portTries, last)
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

// heldPorts are ports that are held until Close.
type heldPorts []io.Closer

func (h heldPorts) Close() error {
	var errs []error
	for _, held := range h {
		errs = append(errs, held.Close())
	}
	return errors.Join(errs...)
}

// freePorts returns n ports of the loopback interface that are free now, and holds them.
func freePorts(n int) (free []int, held heldPorts, err error) {
	for range n {
		l, h, err := realPorts.listen(loopback)
		if err != nil {
			return nil, nil, errors.Join(err, held.Close())
		}
		l.Close() //nolint:errcheck // nothing was accepted
		free, held = append(free, l.Addr().(*net.TCPAddr).Port), append(held, h)
	}
	return free, held, nil
}

// listenOn listens at addr, host and port. Port 0 is a free one, which is held.
func listenOn(addr string) (net.Listener, io.Closer, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		l, err := net.Listen("tcp", addr)
		return l, heldPorts{}, err
	}
	return ownPorts.listen(host)
}
