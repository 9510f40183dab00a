package curatortest

import (
	"net"
	"net/netip"
	"strconv"
	"testing"
)

// take listens at a port of the loopback interface as a server of another process does, for a moment.
func take(addr string) error {
	port := int(netip.MustParseAddrPort(addr).Port())
	l, held, err := newPorts(port, port+1).listen(loopback)
	if err != nil {
		return err
	}
	l.Close() //nolint:errcheck // nothing was accepted
	return held.Close()
}

// A client that tries to connect again must not reach a server of another process.
func TestPortIsHeldWhileNobodyListens(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (addr string, refuse func() (restore func()), end func() error){
		"proxy that refuses connections": func(t *testing.T) (string, func() func(), func() error) {
			t.Helper()
			p := NewProxyT(t, "127.0.0.1:1")
			return p.Addr(), p.Faults().RefuseConnects, p.Close
		},
		"server that is stopped": func(t *testing.T) (string, func() func(), func() error) {
			t.Helper()
			s := NewServerT(t)
			stop := func() func() {
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
				return func() {
					if err := s.Restart(); err != nil {
						t.Error(err)
					}
				}
			}
			return s.Addr(), stop, s.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr, refuse, end := start(t)
			restore := refuse()
			if take(addr) == nil {
				t.Error("another process may take the port")
			}
			restore()
			if err := end(); err != nil {
				t.Error(err)
			}
			if err := take(addr); err != nil {
				t.Errorf("the port is not free after the end: %v", err)
			}
		})
	}
}

func TestFreePortsAreHeldUntilClose(t *testing.T) {
	free, held, err := freePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range free {
		addr := netip.AddrPortFrom(netip.MustParseAddr(loopback), uint16(port)).String()
		if take(addr) == nil {
			t.Errorf("another process may take port %d", port)
		}
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}

// Other processes hold more ports in a row than are tried, just where ours come next.
func TestPortBeyondThoseOfOthers(t *testing.T) {
	p := newPorts(22_000, 32_000)
	others := ports{first: p.first, last: p.last}
	others.given.Store(p.given.Load())
	for range 2 * portTries {
		held, err := hold(net.JoinHostPort(loopback, strconv.Itoa(others.next())))
		if err != nil {
			continue // another process has it
		}
		t.Cleanup(func() { held.Close() }) //nolint:errcheck // nothing was sent
	}
	l, held, err := p.listen(loopback)
	if err != nil {
		t.Fatal(err)
	}
	l.Close() //nolint:errcheck // nothing was accepted
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
