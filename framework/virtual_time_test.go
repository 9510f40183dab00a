package framework_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// soon bounds what waits for nothing, on a busy machine too. It is less than what a client waits for in vain: a test that
// uses it sets the timeouts of its client accordingly.
const soon = 10 * time.Second

// faulty is a server or a proxy that fails on demand.
type faulty interface {
	Addr() string
	Faults() *curatortest.Faults
}

var (
	_ faulty = (*curatortest.Server)(nil)
	_ faulty = (*curatortest.Proxy)(nil)
)

// inVirtualTime runs a test of timeouts in a bubble of testing/synctest, on a server of its own in memory, so that a busy
// machine fails none of them. Where the tests run on Apache ZooKeeper, which is in no bubble, it is a proxy to that one,
// and time is real. A client needs the option dial.
func inVirtualTime(t *testing.T, test func(t *testing.T, proxy faulty, connect string, dial framework.Option)) {
	t.Helper()
	if testenv.Real() {
		proxy, connect := newProxy(t)
		test(t, proxy, connect, dialNetwork)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.InMemory())
		test(t, server, server.ConnectString(), framework.WithDialer(server.DialContext))
	})
}

// onOwnServer is inVirtualTime for a test that stops its server.
func onOwnServer(t *testing.T, test func(t *testing.T, server testenv.Instance, dial framework.Option)) {
	t.Helper()
	if testenv.Real() {
		test(t, testenv.NewServer(t), dialNetwork)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.InMemory())
		test(t, server, framework.WithDialer(server.DialContext))
	})
}

var dialNetwork = framework.WithDialer(new(net.Dialer).DialContext)

// onTwoServers is inVirtualTime with two ways to one tree, each with faults of its own. The option dial knows both.
func onTwoServers(t *testing.T, test func(t *testing.T, one, two faulty, chroot string, dial framework.Option)) {
	t.Helper()
	if testenv.Real() {
		chroot := testenv.Chroot(t)
		test(t, proxyTo(t, testenv.Addr(t)), proxyTo(t, testenv.Addr(t)), chroot, dialNetwork)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		servers := curatortest.NewClusterT(t, 2, curatortest.InMemory()).Servers()
		one, two := named{servers[0], "one:2181"}, named{servers[1], "two:2181"}
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == one.addr {
				return one.DialContext(ctx, network, address)
			}
			return two.DialContext(ctx, network, address)
		}
		test(t, one, two, "", framework.WithDialer(dial))
	})
}

// named is a server in memory with an address.
type named struct {
	*curatortest.Server
	addr string
}

func (n named) Addr() string { return n.addr }
