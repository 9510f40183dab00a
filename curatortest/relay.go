package curatortest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// relay forwards the connections from one server of an ensemble to a port of another, until the two are separated. Then
// it keeps the bytes, like a network that loses all packets and whose ends send them again. After the partition the
// connection continues. A connection that is opened meanwhile ends.
type relay struct {
	listener net.Listener
	target   string
	// callBack is the address by which the other server reaches the first one, if that one sends its address; otherwise
	// "".
	callBack string

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	open chan struct{} // closed while the two are connected
}

func newRelay(target string) (*relay, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, target: target, open: make(chan struct{})}
	close(r.open)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

// start starts to accept connections.
func (r *relay) start() { r.wg.Go(r.accept) }

func (r *relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		r.wg.Go(func() { r.forward(conn) })
	}
}

// gate returns a channel that is closed as soon as the two servers are connected.
func (r *relay) gate() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

func (r *relay) isParted() bool {
	select {
	case <-r.gate():
		return false
	default:
		return true
	}
}

// part separates the two servers, or connects them.
func (r *relay) part(parted bool) {
	if parted == r.isParted() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if parted {
		r.open = make(chan struct{})
	} else {
		close(r.open)
	}
}

func (r *relay) close() error {
	r.cancel()
	err := r.listener.Close()
	r.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// forward forwards a connection in both directions until both have ended.
func (r *relay) forward(from net.Conn) {
	defer from.Close() //nolint:errcheck // the peer learns it from the other direction
	if r.isParted() {
		return
	}
	to, err := r.dial()
	if err != nil {
		return
	}
	defer to.Close() //nolint:errcheck // likewise
	stop := context.AfterFunc(r.ctx, func() {
		from.Close() //nolint:errcheck // the relay is closed
		to.Close()   //nolint:errcheck // likewise
	})
	defer stop()
	if r.callBack != "" && !r.forwardGreeting(from, to) {
		return
	}
	var directions sync.WaitGroup
	directions.Go(func() { r.pump(from, to) })
	directions.Go(func() { r.pump(to, from) })
	directions.Wait()
}

const (
	// dialLimit is the time that a new leader has to listen. It would refuse its followers meanwhile. They are connected
	// to the relay, and would look for another leader if their connection ended.
	dialLimit = 2 * time.Second
	dialPoll  = 20 * time.Millisecond
)

// dial connects to the target.
func (r *relay) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(r.ctx, dialLimit)
	defer cancel()
	t := time.NewTicker(dialPoll)
	defer t.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.target)
		if err == nil || r.callBack != "" { // a server always listens for elections
			return conn, err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// pump forwards one direction until it ends, or a write fails.
func (r *relay) pump(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-r.gate():
		case <-r.ctx.Done():
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				from.Close() //nolint:errcheck // ends the other direction too
				return
			}
		}
		if err != nil {
			to.(*net.TCPConn).CloseWrite() //nolint:errcheck // it may be gone
			if !errors.Is(err, io.EOF) {
				to.Close() //nolint:errcheck // as the connection that was reset
			}
			return
		}
	}
}

const (
	// greetingHead is the version of the protocol of elections, the number of the server, and the length of its address.
	greetingHead = 8 + 8 + 4
	// greetingLimit bounds the wait for it, and maxGreeting the address.
	greetingLimit = 10 * time.Second
	maxGreeting   = 1 << 12
)

// forwardGreeting forwards the first message of a server on a connection to the election port of another. The message
// has the sender's address. The other server calls back at it if it has the greater number; then the connection ends.
// forwardGreeting replaces the address by that of the relay.
func (r *relay) forwardGreeting(from, to net.Conn) bool {
	if err := from.SetReadDeadline(time.Now().Add(greetingLimit)); err != nil {
		return false
	}
	head := make([]byte, greetingHead)
	if _, err := io.ReadFull(from, head); err != nil {
		return false
	}
	n := binary.BigEndian.Uint32(head[greetingHead-4:])
	if n > maxGreeting {
		return false
	}
	if _, err := io.CopyN(io.Discard, from, int64(n)); err != nil {
		return false
	}
	if err := from.SetReadDeadline(time.Time{}); err != nil {
		return false
	}
	greeting := binary.BigEndian.AppendUint32(head[:greetingHead-4], uint32(len(r.callBack)))
	_, err := to.Write(append(greeting, r.callBack...))
	return err == nil
}
