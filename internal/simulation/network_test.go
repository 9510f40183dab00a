package simulation_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// link is the network between one process and one server. It carries bytes late and in order, and carries nothing while
// it is blocked.
type link struct {
	server *curatortest.Server
	seed   uint64

	mu      sync.Mutex
	blocks  map[curatortest.Direction]int // number of faults that block the direction
	changed chan struct{}                 // closed when blocks change
	conns   map[*conn]struct{}
	closed  bool
	done    chan struct{} // closed with the link
}

func newLink(server *curatortest.Server, seed uint64) *link {
	return &link{
		server:  server,
		seed:    seed,
		blocks:  map[curatortest.Direction]int{},
		changed: make(chan struct{}),
		conns:   map[*conn]struct{}{},
		done:    make(chan struct{}),
	}
}

// block holds back the bytes of the direction until unblock. None is lost: TCP sends them again.
func (l *link) block(d curatortest.Direction) (unblock func()) {
	l.change(d, 1)
	return sync.OnceFunc(func() { l.change(d, -1) })
}

func (l *link) change(d curatortest.Direction, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range []curatortest.Direction{curatortest.ToServer, curatortest.ToClient} {
		if d&one != 0 {
			l.blocks[one] += n
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// isBlocked reports whether the direction is blocked. The channel is closed when that may have changed.
func (l *link) isBlocked(d curatortest.Direction) (bool, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocks[d] > 0, l.changed
}

var errLinkClosed = errors.New("simulation: the network is gone")

// pass waits for the latency of one message, and then until the direction is not blocked, or done ends.
func (l *link) pass(d curatortest.Direction, done, expired <-chan struct{}) error {
	timer := time.NewTimer(l.latency(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
		return net.ErrClosed
	}
	for {
		blocked, changed := l.isBlocked(d)
		if !blocked {
			return nil
		}
		select {
		case <-changed:
		case <-done:
			return net.ErrClosed
		case <-expired:
			return os.ErrDeadlineExceeded
		case <-l.done:
			return errLinkClosed
		}
	}
}

// latency returns the time that a message takes that is sent now. Its nanoseconds keep two messages from arriving at
// the same moment. It depends on the time alone, so that the number of earlier messages does not matter.
func (l *link) latency(d curatortest.Direction) time.Duration {
	const least, mean, most = 200 * time.Microsecond, 500 * time.Microsecond, 20 * time.Millisecond
	random := rand.New(rand.NewPCG(l.seed+uint64(d), uint64(time.Now().UnixNano())))
	return min(least+time.Duration(random.ExpFloat64()*float64(mean)), most)
}

// dial opens a connection.
func (l *link) dial(ctx context.Context) (net.Conn, error) {
	for _, d := range []curatortest.Direction{curatortest.ToServer, curatortest.ToClient} {
		if err := l.pass(d, ctx.Done(), nil); err != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
	inner, err := l.server.DialContext(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, link: l, closed: make(chan struct{}), queued: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		inner.Close() //nolint:errcheck // nothing was sent
		return nil, errLinkClosed
	}
	l.conns[c] = struct{}{}
	go c.send()
	return c, nil
}

// reset ends all connections at both ends at once.
func (l *link) reset() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Conn.Close() //nolint:errcheck // it is meant to break
		n++
	}
	return n
}

// close ends the link for good.
func (l *link) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
	l.mu.Unlock()
	l.reset()
}

// conn is the client's end of a connection.
type conn struct {
	net.Conn // to the server, without latency
	link     *link
	received []byte // of the one reader: not returned yet
	ready    []byte // of the one reader: the rest of a frame that is being returned
	deadline atomic.Pointer[time.Time]
	closing  sync.Once
	closed   chan struct{}
	queued   chan struct{} // there is something to send; holds one

	mu    sync.Mutex
	queue [][]byte
}

// Read returns the bytes of the server, a latency later. It returns one frame at a time: the client has handled a frame
// before it gets the next one.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.ready) == 0 {
		frame, err := c.readFrame()
		if len(frame) == 0 && c.isClosed() {
			return 0, net.ErrClosed
		}
		if err := c.arrive(); err != nil {
			return 0, err
		}
		if len(frame) == 0 {
			return 0, err
		}
		c.ready = frame
	}
	n := copy(b, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// readFrame reads until there is a whole frame, or as much of it as comes before an error.
func (c *conn) readFrame() (frame []byte, err error) {
	const head = 4 // the length
	buffer := make([]byte, 4096)
	for {
		if len(c.received) >= head {
			if size := head + int(binary.BigEndian.Uint32(c.received)); len(c.received) >= size {
				frame, c.received = c.received[:size:size], c.received[size:]
				return frame, nil
			}
		}
		n, err := c.Conn.Read(buffer)
		c.received = append(c.received, buffer[:n]...)
		if err != nil {
			frame, c.received = c.received, nil
			return frame, err
		}
	}
}

// arrive waits until the last bytes of the server are here.
func (c *conn) arrive() error {
	var expired <-chan struct{}
	if d := c.deadline.Load(); d != nil && !d.IsZero() {
		ctx, cancel := context.WithDeadline(context.Background(), *d)
		defer cancel()
		expired = ctx.Done()
	}
	return c.link.pass(curatortest.ToClient, c.closed, expired)
}

// Write does not block: the buffer has no limit.
func (c *conn) Write(b []byte) (int, error) {
	if c.isClosed() {
		return 0, net.ErrClosed
	}
	c.mu.Lock()
	c.queue = append(c.queue, append([]byte(nil), b...))
	c.mu.Unlock()
	select {
	case c.queued <- struct{}{}:
	default:
	}
	return len(b), nil
}

// send delivers the written bytes to the server, until the connection is closed and all are delivered.
func (c *conn) send() {
	defer func() {
		c.Conn.Close() //nolint:errcheck // all that counts has been sent
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
	}()
	for {
		closed := c.isClosed() // nothing follows the batch
		c.mu.Lock()
		batch := c.queue
		c.queue = nil
		c.mu.Unlock()
		if len(batch) == 0 && !closed {
			select {
			case <-c.queued:
			case <-c.closed:
			case <-c.link.done:
				return
			}
			continue
		}
		if c.link.pass(curatortest.ToServer, c.link.done, nil) != nil {
			return
		}
		for _, b := range batch {
			if _, err := c.Conn.Write(b); err != nil {
				return
			}
		}
		if len(batch) == 0 { // the end of the connection takes a latency, too
			return
		}
	}
}

// Close ends the connection on this side at once, and on the server's side later.
func (c *conn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		_ = c.Conn.SetReadDeadline(time.Now()) // wakes the reader
	})
	return nil
}

func (c *conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadline.Store(&t)
	if c.isClosed() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }
