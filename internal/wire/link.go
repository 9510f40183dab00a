package wire

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

const (
	// firstXid starts our range of request numbers. It is positive, because the server does not throttle requests
	// with negative ones, and far from the library's, which count from 1.
	firstXid int32 = 0x40000000

	// maxInFlight and maxUnsent bound what is on its way to the server. What comes on top waits in a queue, else
	// the pings of the session would wait behind megabytes.
	maxInFlight = 4096
	maxUnsent   = 1 << 20

	maxWrite = 64 << 10 // a deadline for each slice means no progress, not a large request
	maxFrame = 64 << 20

	// A caller's context bounds its wait, so it writes only what the buffers of the sockets have room for even if
	// the server reads nothing, and not for others without end. The rest is left to the flusher.
	maxInlineWrite  = 32 << 10
	maxInlineWrites = 16
)

// link is one TCP connection, as the library sees it: the library's frames pass, ours travel beside them.
type link struct {
	net.Conn
	c       *Conn
	address string

	// Of the goroutine that reads.
	in           []byte
	r, w         int
	library      []byte // bytes of a frame for the library that it has not taken yet
	readDeadline time.Time

	// Of the library's goroutine that writes.
	partial []byte // bytes of a frame that the library has not completed yet

	shook     bool // the connect response was seen
	greeted   bool // the connect request was sent
	greetedAt int64

	// Guarded by Conn.mu.
	dead          bool
	timeout       time.Duration       // without progress
	out, spare    []byte              // encoded and not yet written
	writing       bool                // somebody is in Conn.Write; the others only append
	writeDeadline time.Time           // of the one who is writing
	flight        queue               // encoded, in order
	unanswered    int                 // bytes of those in flight
	waiting       queue               // beyond the bounds, in order
	leftovers     map[string]struct{} // paths of watches that are left to somebody who is to come
	goodbye       int32               // xid of the one request that the library has
	pings         []int64             // when those not yet answered were sent
	batch         int64               // when the first of what is in out was encoded
	settled       chan struct{}       // closed once nothing is left, if somebody waits for that
}

func newLink(c *Conn, nc net.Conn, address string) *link {
	return &link{Conn: nc, c: c, address: address, in: make([]byte, 16<<10)}
}

// The library's deadlines are replaced by ours, of the handshake, and of progress while reading and writing.

func (l *link) SetDeadline(time.Time) error      { return nil }
func (l *link) SetReadDeadline(time.Time) error  { return nil }
func (l *link) SetWriteDeadline(time.Time) error { return nil }

// cut closes the connection; the reader then notices. It goes below TLS first, whose own goodbye waits for a peer that
// reads nothing.
func (l *link) cut() {
	if t, ok := l.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = t.NetConn().Close()
	}
	_ = l.Conn.Close()
}

func (l *link) established(timeout time.Duration) {
	_ = l.Conn.SetDeadline(time.Time{})
	l.c.mu.Lock()
	l.timeout = timeout * 2 / 3
	l.c.mu.Unlock()
}

// Write takes bytes of the library.
func (l *link) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for len(l.partial) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(l.partial))
		if n < 4 || n > libraryBuffer {
			return 0, fmt.Errorf("wire: the library writes a frame of %d bytes", n)
		}
		if len(l.partial) < n {
			break
		}
		frame := l.partial[:n]
		if err := l.pass(frame); err != nil {
			return 0, err
		}
		l.partial = append(l.partial[:0], l.partial[n:]...)
	}
	return len(p), nil
}

// pass writes a frame of the library.
func (l *link) pass(frame []byte) error {
	if !l.greeted {
		l.greeted, l.greetedAt = true, l.c.now()
		greeting, err := l.greeting(frame[4:])
		if err != nil {
			return err
		}
		if _, err = l.Conn.Write(greeting); err != nil {
			l.c.failedToConnect() // there is no Read to tell of it
		}
		return err
	}
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.dead {
		return net.ErrClosed
	}
	if h, _, err := jute.DecodeRequestHeader(frame[4:]); err == nil && h.Op != jute.OpPing {
		l.goodbye = h.Xid
	} else if err == nil {
		l.pings = append(l.pings, c.now())
	}
	l.out = append(l.out, frame...)
	if !l.writing {
		l.write(false)
	}
	return nil
}

// greeting rewrites the library's connect request. The library does not see our answers, so it knows neither the
// newest zxid, without which a lagging server could show us an older view, nor of read-only servers.
func (l *link) greeting(body []byte) ([]byte, error) {
	req, err := jute.DecodeConnectRequest(body)
	if err != nil {
		return nil, fmt.Errorf("wire: the library's first frame is no connect request: %w", err)
	}
	c := l.c
	req.LastZxidSeen = max(req.LastZxidSeen, c.zxid.Load())
	req.ReadOnly, req.HasReadOnly = c.cfg.ReadOnly, true
	c.mu.Lock()
	if !c.sawWrite { // a session that only a read-only server knows is unknown to the others
		req.SessionID, req.Password = 0, make([]byte, 16)
	}
	c.mu.Unlock()
	return sized(jute.AppendConnectRequest(make([]byte, 4), &req)), nil
}

// sized fills in the length of a frame, whose first four bytes were left for it.
func sized(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// Read gives the library its frames and handles ours in passing.
func (l *link) Read(p []byte) (int, error) {
	for len(l.library) == 0 {
		frame, err := l.frame()
		if err == nil && !l.shook {
			err = l.handshake(frame[4:])
			l.library = frame
		} else if err == nil {
			var ours bool
			if ours, err = l.handle(frame[4:]); !ours {
				l.library = frame
			}
		}
		if err != nil {
			l.lost()
			return 0, err
		}
	}
	n := copy(p, l.library)
	l.library = l.library[n:]
	return n, nil
}

func (l *link) handshake(body []byte) error {
	resp, err := jute.DecodeConnectResponse(body)
	if err != nil { // some servers answer a connect request that they refuse with an error frame
		return fmt.Errorf("wire: handshake with %s: %w", l.address, err)
	}
	l.shook = true
	return l.c.established(l, resp)
}

// frame returns the next frame with its length, valid until the next call.
func (l *link) frame() ([]byte, error) {
	if err := l.fill(4); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(l.in[l.r:])
	if n > maxFrame {
		return nil, fmt.Errorf("wire: frame of %d bytes", n)
	}
	if err := l.fill(4 + int(n)); err != nil {
		return nil, err
	}
	f := l.in[l.r : l.r+4+int(n)]
	l.r += len(f)
	return f, nil
}

// fill reads until n bytes are buffered.
func (l *link) fill(n int) error {
	if l.w-l.r >= n {
		return nil
	}
	if l.r == l.w {
		l.r, l.w = 0, 0
	}
	if l.r+n > len(l.in) {
		in := l.in
		if n > len(in) {
			in = make([]byte, max(n+n/4, min(4*len(in), 64<<10)))
		}
		l.w = copy(in, l.in[l.r:l.w])
		l.r, l.in = 0, in
	}
	for l.w-l.r < n {
		now := time.Now()
		if l.shook && l.readDeadline.Sub(now) < l.timeout*7/8 {
			l.readDeadline = now.Add(l.timeout)
			_ = l.Conn.SetReadDeadline(l.readDeadline)
		}
		k, err := l.Conn.Read(l.in[l.w:])
		l.w += k
		if err != nil && l.w-l.r < n {
			return err
		}
		if l.w == len(l.in) && len(l.in) < 64<<10 && l.r == 0 { // a busy connection earns a larger buffer
			l.in = append(make([]byte, 0, 64<<10), l.in...)[:64<<10]
		}
	}
	return nil
}

// handle takes a frame that is ours.
func (l *link) handle(body []byte) (ours bool, err error) {
	h, rest, err := jute.DecodeReplyHeader(body)
	if err != nil {
		return false, err
	}
	c := l.c
	if h.Xid == jute.XidNotification {
		ev, err := jute.DecodeWatcherEvent(rest)
		if err != nil {
			return true, err
		}
		c.fire(ev)
		return true, nil
	}
	if h.Xid < firstXid && len(body) > libraryBuffer-4 {
		return false, fmt.Errorf("wire: answer %d of %d bytes", h.Xid, len(body))
	}
	switch {
	case h.Xid == jute.XidAuth:
		if h.Code != jute.CodeOK {
			c.authFailed()
		}
		return true, nil
	case h.Xid == jute.XidSetWatches: // without them the watchers would wait for ever: try another connection
		if h.Code != jute.CodeOK {
			err = fmt.Errorf("wire: set watches again: %w", h.Code.Err())
		}
		return true, err
	case h.Xid == jute.XidPing:
		c.mu.Lock()
		if len(l.pings) > 0 { // answered in order
			c.heard(l.pings[0])
			l.pings = l.pings[1:]
		}
		c.mu.Unlock()
		return false, nil
	case h.Xid < firstXid:
		c.mu.Lock()
		defer c.mu.Unlock()
		if h.Xid <= 0 || h.Xid != l.goodbye {
			err = fmt.Errorf("wire: answer to request %d of nobody", h.Xid)
		}
		return false, err
	}
	if h.Zxid > c.zxid.Load() {
		c.zxid.Store(h.Zxid)
	}
	return true, l.answered(h, rest)
}

// answered completes the request that an answer belongs to: the oldest in flight. The error is that the answer
// cannot be read.
func (l *link) answered(h jute.ReplyHeader, body []byte) error {
	c := l.c
	c.mu.Lock()
	r := l.flight.peek()
	if r == nil || r.xid != h.Xid {
		c.mu.Unlock()
		return fmt.Errorf("wire: answer to request %d out of turn", h.Xid)
	}
	watching := r.Watcher != nil || r.Op == jute.OpRemoveWatches
	if !watching {
		l.flight.pop()
		l.landed(r)
	}
	c.mu.Unlock()
	c.heard(r.sent)
	garbled := r.answer(c, h, body)
	if watching {
		// In one step: a watch that is neither in flight nor registered would be taken off the server by the removal of
		// another, and one that is going, and seems to stay, would be left there.
		c.mu.Lock()
		path := withChroot(r.Path, r.chroot(c))
		l.flight.pop()
		c.watches.answered(r, path)
		l.clear(path)
		l.landed(r)
		c.mu.Unlock()
	}
	r.Handler.Answered(r)
	return garbled
}

// landed makes room after r, which was the oldest in flight. c.mu is held.
func (l *link) landed(r *Request) {
	l.unanswered -= r.size
	l.refill()
	l.settle()
	l.c.wakeFlusher(l) // the reader never writes: both ends could wait for each other with full buffers
}

func (c *Conn) fire(ev jute.WatcherEvent) {
	c.mu.Lock()
	told := c.watches.fired(ev.Type, ev.Path)
	if c.link != nil {
		delete(c.link.leftovers, ev.Path)
	}
	c.mu.Unlock()
	out := zk.Event{Type: ev.Type, State: zk.StateHasSession, Path: stripChroot(ev.Path, c.cfg.Chroot)}
	for _, w := range told {
		w.Notify(out)
	}
}

// lost runs on the reader, the last to touch l: it fails what is in flight, in order, after every answer that did
// arrive and before anything that is submitted later. Until it is done, new requests queue behind.
func (l *link) lost() {
	l.cut()
	c := l.c
	c.mu.Lock()
	l.dead = true
	wasLinked := c.link == l
	c.mu.Unlock()
	l.drain()
	if c.ctx.Err() == nil || wasLinked {
		c.down(wasLinked)
	}
}

func (l *link) drain() {
	c := l.c
	for {
		c.mu.Lock()
		l.dead = true
		r := l.flight.pop()
		if r == nil {
			r = l.waiting.pop()
		}
		if r == nil {
			if c.link == l {
				c.link = nil
			}
			l.out, l.spare = nil, nil
			l.settle()
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		r.Err = jute.ErrConnectionLoss
		r.Handler.Answered(r)
	}
}

// The methods below are called with Conn.mu held.

func (l *link) full() bool { return l.flight.len() >= maxInFlight || len(l.out) >= maxUnsent }

// submit encodes r, or queues it when enough is in flight.
func (l *link) submit(r *Request) {
	r.Err, r.Zxid = nil, 0
	if l.dead || l.waiting.len() > 0 || l.full() {
		l.waiting.push(r)
		return
	}
	l.encode(r)
}

func (l *link) refill() {
	for l.waiting.len() > 0 && !l.full() {
		l.encode(l.waiting.pop())
	}
}

// settle tells whoever waits for it that nothing is left.
func (l *link) settle() {
	if l.settled != nil && l.flight.len()+l.waiting.len() == 0 {
		close(l.settled)
		l.settled = nil
	}
}

func (l *link) encode(r *Request) {
	c := l.c
	c.xid = c.xid&(firstXid-1) + 1
	r.xid = firstXid + c.xid - 1
	chroot := r.chroot(c)
	wireOp, flags := r.Op, r.Flags
	if r.Op == jute.OpRemoveWatches {
		path := withChroot(r.Path, chroot)
		wireOp, flags = c.watches.removal(r.Flags, path, r.Watcher, func(w Watcher) bool { return l.leaving(path, w) })
		switch {
		case l.registering(r):
			wireOp = jute.OpCheckWatches // else the watch that is just being set would go too
			l.leave(path)
		case wireOp == jute.OpRemoveWatches && flags == WatchAny:
			delete(l.leftovers, path)
		}
	}
	at := len(l.out)
	if at == 0 {
		l.batch = c.now()
	}
	r.sent = l.batch // one look at the clock for all that is written together
	b := append(l.out, 0, 0, 0, 0)
	b = jute.AppendRequestHeader(b, jute.RequestHeader{Xid: r.xid, Op: wireOp})
	keep := r.Flags
	r.Flags, r.Watch = flags, r.Watcher != nil && !l.covered(r)
	b = jute.AppendRequest(b, chroot, &r.Request)
	r.Flags = keep
	sized(b[at:])
	l.out = b
	r.size, r.server = len(b)-at, l.address
	l.unanswered += r.size
	l.flight.push(r)
}

// covered reports whether a persistent watch on the same node tells of what r asks to watch. A server before 3.9 keeps
// one mode for each node of a session: a one-shot watch would make the persistent one end with the next event
// (ZOOKEEPER-4466).
func (l *link) covered(r *Request) bool {
	ws := &l.c.watches
	if r.Watcher == nil || len(ws[kindPersistent])+len(ws[kindRecursive]) == 0 {
		return false
	}
	path := withChroot(r.Path, r.chroot(l.c))
	by := len(ws[kindPersistent][path])
	switch r.Op {
	case jute.OpExists, jute.OpGetData:
		by += len(ws[kindRecursive][path])
	case jute.OpGetChildren, jute.OpGetChildren2:
	default:
		return false
	}
	return by > 0 && !l.removing(path)
}

// removing reports whether watches on path are being removed by a request in flight.
func (l *link) removing(path string) bool {
	for i := range l.flight.len() {
		o := l.flight.at(i)
		if o.Op == jute.OpRemoveWatches && withChroot(o.Path, o.chroot(l.c)) == path {
			return true
		}
	}
	return false
}

// setting reports whether w is being set on path by a request in flight.
func (l *link) setting(path string, w Watcher) bool {
	for i := range l.flight.len() {
		if o := l.flight.at(i); o.Watcher == w && o.Path == path && o.Op != jute.OpRemoveWatches {
			return true
		}
	}
	for i := range l.waiting.len() {
		if o := l.waiting.at(i); o.Watcher == w && o.Path == path && o.Op != jute.OpRemoveWatches {
			return true
		}
	}
	return false
}

// leaving reports whether w is being removed from path by a request in flight.
func (l *link) leaving(path string, w Watcher) bool {
	for i := range l.flight.len() {
		o := l.flight.at(i)
		if o.Op == jute.OpRemoveWatches && o.Flags == WatchAny && o.Watcher == w &&
			withChroot(o.Path, o.chroot(l.c)) == path {
			return true
		}
	}
	return false
}

// registering reports whether a watch on r's path, one that r is not meant for, is being set by a request in flight, and
// not removed by one behind that.
func (l *link) registering(r *Request) bool {
	for i := range l.flight.len() {
		o := l.flight.at(i)
		if o.Watcher == nil || o.Op == jute.OpRemoveWatches || !l.samePath(o, r) {
			continue
		}
		stays := !l.removedBehind(i)
		if o.Watcher == r.Watcher {
			stays = o.Op == jute.OpAddWatch && r.Flags != WatchAny
		}
		if stays {
			return true
		}
	}
	return false
}

// removedBehind reports whether the watch that the request in flight at i sets is removed by a later one.
func (l *link) removedBehind(i int) bool {
	o := l.flight.at(i)
	for j := i + 1; j < l.flight.len(); j++ {
		r := l.flight.at(j)
		if r.Op == jute.OpRemoveWatches && r.Flags == WatchAny && r.Watcher == o.Watcher && l.samePath(o, r) {
			return true
		}
	}
	return false
}

func (l *link) samePath(a, b *Request) bool {
	if a.Absolute == b.Absolute {
		return a.Path == b.Path
	}
	return withChroot(a.Path, a.chroot(l.c)) == withChroot(b.Path, b.chroot(l.c))
}

// append adds a frame of the session itself.
func (l *link) append(xid int32, op jute.Op, body []byte) {
	at := len(l.out)
	b := append(l.out, 0, 0, 0, 0)
	b = jute.AppendRequestHeader(b, jute.RequestHeader{Xid: xid, Op: op})
	l.out = append(b, body...)
	sized(l.out[at:])
}

// write writes until nothing is left, also what others append meanwhile; what is too much for a caller's goroutine
// is left to the flusher. mu is released while it writes.
func (l *link) write(inline bool) {
	l.writing = true
	var err error
	for n := 0; len(l.out) > 0 && err == nil && !l.dead; n++ {
		if inline && (n == maxInlineWrites || max(len(l.out), l.unanswered) > maxInlineWrite) {
			break
		}
		out := l.out
		l.out, l.spare = l.spare[:0], nil
		l.c.mu.Unlock()
		err = l.writeSlices(out)
		l.c.mu.Lock()
		if cap(out) <= maxUnsent {
			l.spare = out[:0]
		}
		l.refill()
	}
	l.writing = false
	if err != nil {
		l.cut()
		return
	}
	l.c.wakeFlusher(l)
}

func (l *link) writeSlices(b []byte) error {
	for len(b) > 0 {
		now := time.Now()
		if l.writeDeadline.Sub(now) < l.timeout*7/8 {
			l.writeDeadline = now.Add(l.timeout)
			if err := l.Conn.SetWriteDeadline(l.writeDeadline); err != nil {
				return err
			}
		}
		n, err := l.Conn.Write(b[:min(len(b), maxWrite)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
