package curatortest_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// scriptedServer is what a server of this package has: a scripted one behind faults, on the network and in memory.
func scriptedServer(t *testing.T) (s *scripted, network, memory *faulty) {
	t.Helper()
	s, memory = scriptedInMemory(t)
	must(t, memory.Listen("127.0.0.1:0"))
	network = &faulty{
		Faults: memory.Faults,
		dial:   func() (net.Conn, error) { return net.Dial("tcp", memory.Addr()) },
		close:  memory.close,
	}
	return s, network, memory
}

func wantRefused(t *testing.T, p *faulty) {
	t.Helper()
	conn, err := p.dial()
	if err == nil {
		conn.Close()
	}
	var e *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &e) || e.Op != "dial" {
		t.Errorf("got %v, want refusal", err)
	}
}

func TestRefusesOnTheNetworkAndInMemory(t *testing.T) {
	_, network, memory := scriptedServer(t)
	a, b := connectRaw(t, network), connectRaw(t, memory)
	restore := memory.RefuseConnects()
	wantRefused(t, network)
	wantRefused(t, memory)
	a.send("/a")
	a.wantXids(1)
	b.send("/b")
	b.wantXids(1)
	restore()
	connectRaw(t, network)
	connectRaw(t, memory)
	must(t, memory.close())
	wantRefused(t, network)
	wantRefused(t, memory)
}

// Another process may take a port before the test listens on it again.
func TestPortIsNoneThatTheSystemHandsOut(t *testing.T) {
	_, _, memory := scriptedServer(t)
	proxy := curatortest.NewProxyT(t, memory.Addr())
	server, err := curatortest.NewServer()
	must(t, err)
	defer func() { must(t, server.Close()) }()
	for kind, addr := range map[string]string{"proxy": proxy.Addr(), "server": server.Addr()} {
		if port := netip.MustParseAddrPort(addr).Port(); port >= 32768 {
			t.Errorf("the %s has port %d", kind, port)
		}
	}
}

func TestStopsAndListensAgain(t *testing.T) {
	s, network, memory := scriptedServer(t)
	addr := memory.Addr()
	in := memory.Add(curatortest.Rule{Path: "/gone", Action: curatortest.DropReply})
	for range 3 {
		a, b := connectRaw(t, network), connectRaw(t, memory)
		memory.StopListening()
		memory.StopListening()
		a.wantEnd()
		b.wantEnd()
		eventually(t, "the server's side ends", func() bool { return s.open() == 0 })
		if n := memory.Connections(); n != 0 {
			t.Errorf("%d connections", n)
		}
		wantRefused(t, network)
		wantRefused(t, memory)
		must(t, memory.ListenAgain())
		must(t, memory.ListenAgain())
	}
	if got := memory.Addr(); got != addr {
		t.Errorf("listens at %s, before at %s", got, addr)
	}
	for _, p := range []*faulty{network, memory} {
		c := connectRaw(t, p)
		c.send("/gone", "/a")
		c.wantXids(2)
	}
	if in.Hits() != 2 {
		t.Errorf("the rule did not survive: %d hits", in.Hits())
	}
	if e := memory.Trace()[0]; e.Op != "connect" || e.Reply {
		t.Errorf("the trace did not survive: starts with %v", e)
	}
}

func TestStopsWhileItRefuses(t *testing.T) {
	_, network, memory := scriptedServer(t)
	restore := memory.RefuseConnects()
	memory.StopListening()
	must(t, memory.ListenAgain())
	wantRefused(t, network)
	wantRefused(t, memory)
	memory.StopListening()
	restore()
	wantRefused(t, network)
	wantRefused(t, memory)
	must(t, memory.ListenAgain())
	connectRaw(t, network)
	connectRaw(t, memory)
}

func TestListensAgainOnlyBeforeTheEnd(t *testing.T) {
	_, _, memory := scriptedServer(t)
	memory.StopListening()
	must(t, memory.close())
	if err := memory.ListenAgain(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	must(t, memory.close())
}

func TestPortInUse(t *testing.T) {
	addr := freeAddrs(t, 1)[0] // no connection of another gets its port
	synctest.Test(t, func(t *testing.T) {
		f := curatortest.NewFaults(nil)
		l, err := net.Listen("tcp", addr)
		must(t, err)
		if err := f.Listen(addr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("got %v", err)
		}
		must(t, l.Close())
		must(t, f.Listen(addr))
		f.StopListening()

		l, err = net.Listen("tcp", addr)
		must(t, err)
		if err := f.ListenAgain(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Second, func() { l.Close() })
		must(t, f.ListenAgain()) // it is free in time
		must(t, f.Close())
	})
}

func TestConnectsInMemoryUnlessTheContextHasEnded(t *testing.T) {
	_, p := scriptedInMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := p.Connect(ctx)
	must(t, err)
	defer conn.Close()
	cancel()
	if _, err := p.Connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := p.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// In memory time is that of testing/synctest.
func TestWaitsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := scriptedInMemory(t)
		c := connectRaw(t, p)
		took := func(want time.Duration, do func()) {
			t.Helper()
			start := time.Now()
			do()
			if d := time.Since(start); d != want {
				t.Errorf("took %v, want %v", d, want)
			}
		}
		in := p.Add(curatortest.Rule{Action: curatortest.DelayReply, Delay: time.Second})
		took(3*time.Second, func() {
			c.send("/a", "/b", "/c")
			c.wantXids(1, 2, 3)
		})
		in.Remove()
		p.Add(curatortest.Rule{Action: curatortest.DelayRequest, Delay: time.Second})
		took(2*time.Second, func() {
			c.send("/a", "/b")
			c.wantXids(4, 5)
		})
		thaw := p.Freeze()
		time.AfterFunc(time.Minute/60, thaw)
		took(2*time.Second, func() {
			c.send("/a")
			c.wantXids(6)
		})
		restore := p.BlackHole(curatortest.Both)
		time.AfterFunc(time.Second, restore)
		took(time.Second, func() {
			c.send("/a")
			c.wantEnd()
		})
	})
}
