package testenv

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// Place is a way to a server, with faults of its own. A client needs DialContext as its dialer.
type Place interface {
	Addr() string
	Faults() *curatortest.Faults
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Tick is the unit of time of the servers that tests share.
const Tick = 100 * time.Millisecond

// SessionTimeout is that of a client whose session ends in a test. In real time the test waits for it, and a busy
// machine must not end the session before.
const SessionTimeout = 4 * time.Second

// InVirtualTime runs a test of timeouts in a bubble of testing/synctest, on a server of its own in memory, so that a
// busy machine fails none of them. With Apache ZooKeeper the place is a proxy to that server, and time is real. The
// chroot is the test's own.
func InVirtualTime(t *testing.T, test func(t *testing.T, place Place, chroot string)) {
	t.Helper()
	if Real() {
		test(t, newNetworkPlace(t), Chroot(t))
		return
	}
	synctest.Test(t, func(t *testing.T) {
		test(t, curatortest.NewServerT(t, curatortest.WithoutPort()), "")
	})
}

// InVirtualTimeTwice is [InVirtualTime] with two ways to one tree. Each dialer reaches both addresses.
func InVirtualTimeTwice(t *testing.T, test func(t *testing.T, one, two Place, chroot string)) {
	t.Helper()
	if Real() {
		test(t, newNetworkPlace(t), newNetworkPlace(t), Chroot(t))
		return
	}
	synctest.Test(t, func(t *testing.T) {
		servers := curatortest.NewClusterT(t, 2, curatortest.WithoutPort()).Servers()
		test(t, memoryPlace{servers[0], "one:2181", servers}, memoryPlace{servers[1], "two:2181", servers}, "")
	})
}

// Dial is how a client connects.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// OnOwnServer is [InVirtualTime] for a test that stops its server.
func OnOwnServer(t *testing.T, test func(t *testing.T, server Instance, dial Dial)) {
	t.Helper()
	if Real() {
		test(t, NewServer(t), new(net.Dialer).DialContext)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		test(t, server, server.DialContext)
	})
}

var _ Place = (*curatortest.Server)(nil)

// memoryPlace is one of two servers in memory.
type memoryPlace struct {
	*curatortest.Server
	addr    string
	servers []*curatortest.Server
}

func (p memoryPlace) Addr() string { return p.addr }

func (p memoryPlace) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address == "one:2181" {
		return p.servers[0].DialContext(ctx, network, address)
	}
	return p.servers[1].DialContext(ctx, network, address)
}

// networkPlace is a proxy to the server of this test binary.
type networkPlace struct {
	*curatortest.Proxy
	net.Dialer
}

func newNetworkPlace(t *testing.T) *networkPlace {
	t.Helper()
	return newProxyPlace(t, Addr(t))
}

// newProxyPlace returns a way to a server on the network, with faults of its own.
func newProxyPlace(t *testing.T, addr string) *networkPlace {
	t.Helper()
	return &networkPlace{Proxy: curatortest.NewProxyT(t, addr)}
}

// ProxyPlace returns a way to a server of the test's own on the network.
func ProxyPlace(t *testing.T, addr string) Place {
	t.Helper()
	return newProxyPlace(t, addr)
}
