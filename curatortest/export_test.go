package curatortest

import (
	"context"
	"crypto/x509"
	"net"
)

// What the server of this package is made of, for tests.

func NewFaults(dial func(context.Context) (net.Conn, error)) *Faults {
	return newFaults(func(ctx context.Context, _ *x509.Certificate) (net.Conn, error) { return dial(ctx) })
}

func (f *Faults) Listen(addr string) error { return f.listen(addr) }

func (f *Faults) Addr() string { return f.addr() }

func (f *Faults) StopListening() { f.stopListening() }

func (f *Faults) ListenAgain() error { return f.listenAgain() }

func (f *Faults) Connect(ctx context.Context) (net.Conn, error) { return f.connect(ctx) }

func (f *Faults) Close() error { return f.close() }

func NewPipe() (a, b net.Conn) { return newPipe() }

// Lost returns the number of connections that have lost bytes.
func (f *Faults) Lost() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for l := range f.links {
		if l.lost.Load() {
			n++
		}
	}
	return n
}
