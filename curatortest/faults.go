package curatortest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Faults makes the connections to a server fail on demand. It reads the protocol: a [Rule] selects single requests,
// replies and watch events, and cuts, holds, delays, refuses or swallows them. Other methods fail whole connections.
// Without a fault all bytes pass unchanged, also those of other protocols. Servers and proxies have Faults, so the same
// test runs with either.
//
// All methods are safe for concurrent use.
type Faults struct {
	ctx    context.Context
	cancel context.CancelFunc
	dial   dialer      // to the server
	secure *tls.Config // of the connections of the network; nil without TLS
	// maxRequest is the size from which on the server may refuse a frame by its length alone.
	maxRequest int

	wg      sync.WaitGroup // of every goroutine
	trace   trace
	active  atomic.Pointer[[]*Injection] // replaced, never changed
	trouble atomic.Pointer[trouble]      // replaced, never changed

	listening sync.Mutex   // held while the listener changes, outside mu
	listener  net.Listener // nil while connections are refused, and without a network
	held      io.Closer    // holds the port; nil without a network

	mu       sync.Mutex
	address  string // where to listen; empty without a network
	links    map[*link]struct{}
	accepted int64 // number of all connections
	refusals int
	stopped  bool
	killed   map[int64]struct{} // sessions whose clients are to find them expired
	closed   bool
	unproven []*Injection // rules that may not have hit yet
}

// dialer connects to a server, for a client with a verified certificate or nil.
type dialer func(ctx context.Context, cert *x509.Certificate) (net.Conn, error)

// newFaults returns the faults of connections to the server that dial reaches. It accepts connections in memory at
// once; listen adds those of the network.
func newFaults(dial dialer) *Faults {
	f := &Faults{dial: dial, maxRequest: defaultMaxRequest, links: map[*link]struct{}{}}
	f.ctx, f.cancel = context.WithCancel(context.Background()) // ends with close
	f.active.Store(&[]*Injection{})
	f.trouble.Store(&trouble{changed: make(chan struct{})})
	return f
}

// Connections returns the number of open connections of clients. A connection that its client has closed counts until
// the proxy reads its end, and it does not read while it is frozen or holds the client's requests.
func (f *Faults) Connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.links)
}

// CutAll ends all connections and returns their number.
func (f *Faults) CutAll() int {
	return f.cutIf(func(*link) bool { return true })
}

// Cut ends the connections of a session. It reports whether there was one.
func (f *Faults) Cut(sessionID int64) bool {
	return f.cutIf(func(l *link) bool { return l.session.Load() == sessionID }) > 0
}

func (f *Faults) cutIf(which func(*link) bool) int {
	var chosen []*link
	f.mu.Lock()
	for l := range f.links {
		if which(l) {
			chosen = append(chosen, l)
		}
	}
	f.mu.Unlock()
	n := 0
	for _, l := range chosen {
		if l.cut() {
			n++
		}
	}
	return n
}

// accept takes over the server's end of a client's connection, which shakes hands first if there is a config of TLS. It
// reports whether it does; else it closes the connection.
func (f *Faults) accept(conn net.Conn, secure *tls.Config) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		conn.Close() //nolint:errcheck // nothing was sent
		return false
	}
	f.accepted++
	l := newLink(f, conn, f.accepted)
	l.secure = secure
	f.links[l] = struct{}{}
	f.wg.Go(l.run)
	return true
}

// open reports whether connections are accepted. The caller holds mu.
func (f *Faults) open() bool { return f.refusals == 0 && !f.stopped && !f.closed }

func (f *Faults) forget(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.links, l)
}

// close ends all connections and all waits for good. It returns an error about the rules that have missed. A second
// close only returns that error again.
func (f *Faults) close() error {
	f.mu.Lock()
	f.closed = true
	list := f.injections()
	f.mu.Unlock()
	f.cancel()
	f.listening.Lock()
	err := f.closeListener()
	if f.held != nil {
		err = errors.Join(err, f.held.Close())
		f.held = nil
	}
	f.listening.Unlock()
	for _, in := range list {
		in.remove()
	}
	f.CutAll()
	f.wg.Wait()
	return errors.Join(err, f.missed())
}
