package curatortest

import (
	"context"
	"crypto/x509"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between clients and a ZooKeeper server. Its [Faults] make the network between them fail on demand.
// Without a fault all bytes pass unchanged, four-letter words too.
//
// All methods are safe for concurrent use.
type Proxy struct {
	faults *Faults
	target atomic.Pointer[string]
}

// NewProxy starts a proxy for the server at target, host and port, on a free port of the loopback interface. The server
// need not run: until it does, the proxy closes each connection at once.
func NewProxy(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, err
	}
	p := &Proxy{}
	p.target.Store(&target)
	p.faults = newFaults(func(ctx context.Context, _ *x509.Certificate) (net.Conn, error) { return p.dial(ctx) })
	if err := p.faults.listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return p, nil
}

// NewProxyT is [NewProxy] for a test: it fails the test if there is an error, and closes the proxy when the test ends.
// A [Rule] that is not valid or has not hit fails the test then.
func NewProxyT(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p, err := NewProxy(target)
	return forTest(tb, p, err)
}

// Faults returns the faults of the connections through the proxy.
func (p *Proxy) Faults() *Faults { return p.faults }

// Addr returns host and port of the proxy.
func (p *Proxy) Addr() string { return p.faults.addr() }

// ConnectString returns the connect string of the proxy.
func (p *Proxy) ConnectString() string { return p.Addr() }

// SetTarget sets the server of new connections. Open ones stay with theirs.
func (p *Proxy) SetTarget(addr string) { p.target.Store(&addr) }

// Close ends all connections and stops listening. The error names the rules that are not valid or have not hit, see
// [Faults.Add]. A second Close only returns that error again.
func (p *Proxy) Close() error { return p.faults.close() }

// dialTimeout bounds the dial of the server.
const dialTimeout = 10 * time.Second

func (p *Proxy) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "tcp", *p.target.Load())
}
