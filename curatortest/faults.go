package curatortest

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Faults makes the connections to a server fail on demand. It reads the protocol: a [Rule] picks single requests,
// replies and watch events, to cut, hold, delay, refuse or swallow them. Other methods fail whole connections. Without
// any of that everything passes unchanged, what is no ZooKeeper protocol too. Servers and proxies have Faults, so that
// a test of them runs with either.
//
// All methods are safe for concurrent use.
type Faults struct {
	ctx    context.Context
	cancel context.CancelFunc
	dial   func(context.Context) (net.Conn, error) // to the server
	// maxRequest is from which size on the server may refuse a frame that it has only seen the length of.
	maxRequest int

	wg      sync.WaitGroup // of every goroutine
	trace   trace
	active  atomic.Pointer[[]*Injection] // replaced, never changed
	trouble atomic.Pointer[trouble]      // replaced, never changed

	listening sync.Mutex   // held while the listener changes, outside mu
	listener  net.Listener // nil as long as connections are refused, and if there are none but in memory

	mu       sync.Mutex
	address  string // where to listen; empty if there are no connections but in memory
	links    map[*link]struct{}
	accepted int64 // connections ever
	refusals int
	stopped  bool
	killed   map[int64]struct{} // sessions whose clients are to find them expired
	closed   bool
	unproven []*Injection // rules that may not have hit yet
}

// newFaults makes faults for connections to the server that dial reaches. Those in memory can be made at once; listen
// adds those of the network.
func newFaults(dial func(context.Context) (net.Conn, error)) *Faults {
	f := &Faults{dial: dial, maxRequest: defaultMaxRequest, links: map[*link]struct{}{}}
	f.ctx, f.cancel = context.WithCancel(context.Background()) // ends with close
	f.active.Store(&[]*Injection{})
	f.trouble.Store(&trouble{changed: make(chan struct{})})
	return f
}

// Connections returns how many connections of clients are open. One whose client has gone counts until this side may
// learn of it, which it may not while it is frozen or holds the client's requests.
func (f *Faults) Connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.links)
}

// CutAll ends all connections and returns how many there were.
func (f *Faults) CutAll() int {
	return f.cutIf(func(*link) bool { return true })
}

// Cut ends the connections of a session and reports whether there was one.
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

// accept takes over the server's end of a client's connection. It reports whether it does; else the connection is
// closed.
func (f *Faults) accept(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		conn.Close() //nolint:errcheck // nothing was sent
		return false
	}
	f.accepted++
	l := newLink(f, conn, f.accepted)
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

// close ends all connections and everything that waits, for good, and returns an error about the rules that have
// missed. A second close does nothing, and returns that error again.
func (f *Faults) close() error {
	f.mu.Lock()
	f.closed = true
	list := f.injections()
	f.mu.Unlock()
	f.cancel()
	f.listening.Lock()
	err := f.closeListener()
	f.listening.Unlock()
	for _, in := range list {
		in.remove()
	}
	f.CutAll()
	f.wg.Wait()
	return errors.Join(err, f.missed())
}
