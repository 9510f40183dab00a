package curatortest

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy stands between clients and a ZooKeeper server and makes the network fail on demand. It knows the
// protocol: a [Rule] picks single requests, replies and watch events, to cut, hold, delay or swallow them.
// Other methods fail whole connections. Without any of that everything passes unchanged, four letter words
// too.
//
// All methods are safe for concurrent use.
type Proxy struct {
	ctx    context.Context
	cancel context.CancelFunc
	addr   string
	wg     sync.WaitGroup // of every goroutine
	trace  trace
	active atomic.Pointer[[]*Injection] // replaced, never changed
	faults atomic.Pointer[faults]       // replaced, never changed

	listening sync.Mutex // held while the listener changes
	listener  net.Listener
	refusals  int

	mu     sync.Mutex
	target string
	links  map[*link]struct{}
	closed bool
}

// NewProxy starts a proxy for the server at target, host and port, on a free port of the loopback interface.
// The server need not run: as long as it does not, connections are closed as soon as they are made.
func NewProxy(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{addr: l.Addr().String(), target: target, links: map[*link]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background()) // ends with Close
	p.active.Store(&[]*Injection{})
	p.faults.Store(&faults{changed: make(chan struct{})})
	p.serve(l)
	return p, nil
}

// Addr returns host and port of the proxy.
func (p *Proxy) Addr() string { return p.addr }

// ConnectString returns what a client connects to.
func (p *Proxy) ConnectString() string { return p.addr }

// SetTarget makes addr the server of connections that are accepted from now on.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Connections returns how many connections of clients are open. One whose client has gone counts until the
// proxy may learn of it, which it may not while it is frozen or holds the client's requests.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// CutAll ends all connections and returns how many there were.
func (p *Proxy) CutAll() int {
	return p.cutIf(func(*link) bool { return true })
}

// Cut ends the connections of a session and tells whether there was one.
func (p *Proxy) Cut(sessionID int64) bool {
	return p.cutIf(func(l *link) bool { return l.session.Load() == sessionID }) > 0
}

func (p *Proxy) cutIf(which func(*link) bool) int {
	var chosen []*link
	p.mu.Lock()
	for l := range p.links {
		if which(l) {
			chosen = append(chosen, l)
		}
	}
	p.mu.Unlock()
	n := 0
	for _, l := range chosen {
		if l.cut() {
			n++
		}
	}
	return n
}

// Close ends all connections and stops listening. A second Close does nothing.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	list := p.injections()
	p.mu.Unlock()
	p.cancel()
	var err error
	p.listening.Lock()
	if p.listener != nil {
		err = p.listener.Close()
		p.listener = nil
	}
	p.listening.Unlock()
	for _, in := range list {
		in.Remove()
	}
	p.CutAll()
	p.wg.Wait()
	return err
}

// serve accepts connections until the listener is closed. The caller holds listening, or nobody knows p yet.
func (p *Proxy) serve(l net.Listener) {
	p.listener = l
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			switch {
			case err == nil:
				p.accept(conn)
			case errors.Is(err, net.ErrClosed):
				return
			default: // no file descriptors, or the client has gone already
				select {
				case <-time.After(acceptPause):
				case <-p.ctx.Done():
				}
			}
		}
	})
}

const acceptPause = 10 * time.Millisecond

func (p *Proxy) accept(conn net.Conn) {
	l := newLink(p, conn)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		l.cut()
		return
	}
	p.links[l] = struct{}{}
	target := p.target
	p.mu.Unlock()
	p.wg.Go(func() { l.run(target) })
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
