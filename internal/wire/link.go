package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/sasl"
)

// firstXid starts our range of request numbers. It is positive, because the server does not throttle requests with
// negative ones, and far from the library's, which count from 1.
const firstXid int32 = 0x40000000

// link is one TCP connection from the library's view: the library's frames pass, ours travel beside them.
type link struct {
	net.Conn
	c       *Conn
	address string

	// These fields belong to the goroutine that reads.
	frames  frameReader
	library []byte     // the rest of a frame that the library has not read yet
	arrived []*Request // the requests whose answers are in the buffer, in order

	spareArrived []*Request // the memory of arrived, for reuse

	liveness      liveness
	provesNothing bool // the server has no quorum, but the session is of servers with one: its answers do not count

	// This field belongs to the library's goroutine that writes.
	partial []byte // the beginning of a frame that the library has not completed yet

	partAt   atomic.Int64  // when a slice of a large write, but not its last, was written
	provedBy atomic.Int64  // when the last successful write request was encoded
	over     chan struct{} // closed when all requests have ended or were given back, and the loss was reported
	overOnce sync.Once

	exchange      sasl.Exchange // the login; nil without one
	loginEnd      time.Time     // when the time for the login is over
	authSent      int           // number of credentials that were sent before the connection was established
	handshakeDone bool          // the connect response was read
	connectSent   bool          // the connect request was sent
	connectSentAt int64

	watchesOp      jute.Op // the kind of the requests that set the watches again
	settingWatches int     // number of those that are not answered
	watchesSent    int64   // when they were encoded

	// Guarded by Conn.mu.
	dead          bool
	timeout       time.Duration // the longest time without progress
	out, spare    []byte        // encoded bytes that are not written yet, and memory for the next ones
	writing       bool          // a goroutine is in Conn.Write; the others only append
	writeDeadline time.Time     // used by the goroutine that writes only
	windows       windows
	flight        ring          // encoded requests, in order
	unanswered    int           // bytes of the requests in flight
	waiting       list          // requests that wait for room, or for the answer to an addWatch, in order
	closeXid      int32         // xid of the library's only request, the close
	pings         []int64       // when the unanswered pings were sent
	batch         int64         // when the first request of out was encoded
	beat          int64         // when the last heartbeat was encoded
	answerReadAt  int64         // when the last answer was read
	watchesFirst  bool          // no request is sent before the watches are set again
	heartbeats    int           // number of heartbeats in flight
	progressSeen  int64         // result of lastProgress in the previous call of Heartbeat
	stalledCalls  int           // number of calls of Heartbeat since progressSeen changed
	settled       chan struct{} // closed when no request waits or is in flight; nil if nothing waits for that
}

func newLink(c *Conn, nc net.Conn, address string) *link {
	l := &link{
		Conn: nc, c: c, address: address, windows: newWindows(c.SessionTimeout()), over: make(chan struct{}),
	}
	l.frames = newFrameReader(nc, c.now, c.cfg.maxReply(), l.expects)
	return l
}

// expects reports whether xid is the number of the oldest request in flight.
func (l *link) expects(xid int32) bool {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	r := l.flight.peek()
	return r != nil && r.xid == xid
}

// Our deadlines replace the library's: for the handshake, and for progress of reads and writes.

func (l *link) SetDeadline(time.Time) error      { return nil }
func (l *link) SetReadDeadline(time.Time) error  { return nil }
func (l *link) SetWriteDeadline(time.Time) error { return nil }

// cut closes the connection; the reader then notices. It closes the TCP connection first, because the close of TLS
// would wait for a peer that reads nothing.
func (l *link) cut() {
	if t, ok := l.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = t.NetConn().Close()
	}
	_ = l.Conn.Close()
}

// end cuts the connection and reports why as the reason of its loss.
func (l *link) end(why error) {
	if a, ok := l.Conn.(*attempt); ok {
		a.note(why)
	}
	l.cut()
}

// name returns the server for logs and errors.
func (l *link) name() string {
	if a, ok := l.Conn.(*attempt); ok {
		return a.name()
	}
	return l.address
}

func (l *link) established(timeout time.Duration) {
	_ = l.Conn.SetDeadline(time.Time{})
	l.frames.established(timeout * 2 / 3)
	l.liveness = newLiveness(timeout, l.c.cfg.TickTime, l.connectSentAt)
	l.c.mu.Lock()
	l.timeout = timeout * 2 / 3
	l.windows = newWindows(timeout)
	l.c.mu.Unlock()
}

// noteAnswer records that the server has answered a request that was sent at this time.
func (l *link) noteAnswer(sent int64) {
	if l.provesNothing {
		return
	}
	l.liveness.answered(sent, l.frames.readAt)
	if c := l.c; sent > c.lastAnswer.Load() { // one goroutine at a time reads
		c.lastAnswer.Store(sent)
	}
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

// pass writes a frame of the library to the server.
func (l *link) pass(frame []byte) error {
	if !l.connectSent {
		l.connectSent, l.connectSentAt = true, l.c.now()
		request, err := l.connectRequest(frame[4:])
		if err != nil {
			return err
		}
		if _, err = l.Conn.Write(request); err != nil {
			l.c.failedToConnect() // there is no Read that could report it
		}
		return err
	}
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.dead {
		return net.ErrClosed
	}
	l.startBatch()
	if h, _, err := jute.DecodeRequestHeader(frame[4:]); err == nil && h.Op == jute.OpPing {
		l.pings = append(l.pings, c.now())
		l.out = slices.Insert(l.out, 0, frame...) // ahead of the unwritten requests: it keeps the session alive
	} else {
		l.closeXid = h.Xid
		l.out = append(l.out, frame...)
	}
	if !l.writing {
		l.write(false)
	}
	return nil
}

// connectRequest rewrites the library's connect request. It adds the last zxid, which the library does not see: without
// it a lagging server could show older data. It also adds whether a read-only server will do.
func (l *link) connectRequest(body []byte) ([]byte, error) {
	req, err := jute.DecodeConnectRequest(body)
	if err != nil {
		return nil, fmt.Errorf("wire: the library's first frame is no connect request: %w", err)
	}
	c := l.c
	req.LastZxidSeen = max(req.LastZxidSeen, c.zxid.Load())
	req.ReadOnly, req.HasReadOnly = c.cfg.ReadOnly, true
	c.mu.Lock()
	if !c.sawQuorum { // other servers do not have the session of a read-only server
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

// Read returns the library's frames to the library, and handles ours.
func (l *link) Read(p []byte) (int, error) {
	for len(l.library) == 0 {
		frame, err := l.frames.next(l.handshakeDone)
		if err == nil && !l.handshakeDone {
			l.library = bytes.Clone(frame) // the login reads more frames
			err = l.handshake(l.library[4:])
		} else if err == nil {
			var ours bool
			if ours, err = l.handle(frame[4:]); !ours {
				l.library = frame
			}
		}
		if err != nil {
			if a, ok := l.Conn.(*attempt); ok {
				a.note(err)
			}
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
	l.handshakeDone = true
	if resp.SessionID != 0 && resp.TimeoutMs != 0 { // else the session has ended
		if err = l.login(); err != nil {
			return err
		}
		if l.c.cfg.Probe && !l.c.hosts.served() {
			if err = l.probe(); err != nil {
				return err
			}
		}
	}
	return l.c.established(l, resp)
}

// handle handles a frame if it is ours.
func (l *link) handle(body []byte) (ours bool, err error) {
	h, rest, err := jute.DecodeReplyHeader(body)
	if err != nil {
		return false, err
	}
	c := l.c
	if h.Code == jute.CodeSessionClosedRequireSASL {
		c.hosts.noteLoginRequired()
		return true, ErrLoginRequired
	}
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
	case h.Xid == jute.XidSetWatches: // without these watches the watchers would wait for ever: try another connection
		if l.settingWatches--; l.settingWatches == 0 {
			l.watchesAnswered()
		}
		if h.Code == jute.CodeUnimplemented { // the server closes the connection too: the next one sets the others
			c.endPersistentWatches()
		}
		if h.Code != jute.CodeOK {
			err = fmt.Errorf("wire: set watches again: %w", h.Code.Err())
		}
		return true, err
	case h.Xid == jute.XidPing:
		c.mu.Lock()
		if len(l.pings) > 0 { // answered in order
			l.noteAnswer(l.pings[0])
			l.pings = l.pings[1:]
			c.pinged.Store(max(c.pinged.Load(), h.Zxid))
		}
		err := l.silent()
		c.mu.Unlock()
		return false, err
	case h.Xid < firstXid:
		c.mu.Lock()
		defer c.mu.Unlock()
		if h.Xid <= 0 || h.Xid != l.closeXid {
			err = fmt.Errorf("wire: answer to the unknown request %d", h.Xid)
		}
		return false, err
	}
	if h.Zxid > c.zxid.Load() {
		c.zxid.Store(h.Zxid)
	}
	return true, l.answered(h, rest)
}

// answered completes the oldest request in flight with its answer. It returns an error if the answer cannot be read.
func (l *link) answered(h jute.ReplyHeader, body []byte) error {
	c := l.c
	if len(l.arrived) == 0 {
		if err := l.arrive(h.Xid); err != nil {
			return err
		}
	}
	r := l.arrived[0]
	l.arrived[0], l.arrived = nil, l.arrived[1:]
	watching := concernsWatches(r)
	var removed []Watcher
	garbled := r.answer(c, h, body, l.frames.skipped)
	if r.Err == nil && isWrite(r.Op) {
		c.proved(l, r.sent)
	}
	if r.Op == jute.OpCreateContainer && errors.Is(r.Err, jute.ErrUnimplemented) && !r.replaced {
		c.hosts.refused(r.Op)
	}
	if watching {
		// In one step. Otherwise the removal of another watch could remove a watch that is neither in flight nor
		// registered, or leave one that is being removed.
		c.mu.Lock()
		path := r.serverPath(c)
		wasRecursive := c.watches.sets[kindRecursive][path] != nil
		c.watches.ended(r, path)
		removed = c.watches.answered(r, path)
		if errors.Is(r.Err, ErrReplyTooLarge) && setsWatch(r) { // the server has set the watch
			c.watches.traffic.updatePath(path, func(p *pathTraffic) { p.orphaned = true })
		}
		l.removeOrphan(path)
		if wasRecursive {
			l.endRecursion(path)
		}
		l.popFlight()
		l.refilled()
		c.mu.Unlock()
		c.notifyRemoved(removed, path)
	}
	r.Handler.Answered(r)
	return garbled
}

// arrive fills arrived with the oldest request in flight, whose answer has the number xid, and with those behind it
// whose answers are in the buffer too, so that one read needs one lock. They leave the flight. A request that concerns
// watches stays in the flight until its answer is handled, and the requests behind it wait for that.
func (l *link) arrive(xid int32) error {
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	r := l.flight.peek()
	if r == nil || r.xid != xid {
		return fmt.Errorf("wire: answer to request %d out of turn", xid)
	}
	l.arrived = append(l.spareArrived[:0], r)
	sent := r.sent
	for at, ok := l.frames.r, true; ok && !concernsWatches(r); {
		l.popFlight()
		if r, at, ok = l.nextArrived(at); ok {
			l.arrived = append(l.arrived, r)
			sent = r.sent
		}
	}
	l.spareArrived = l.arrived
	l.refilled()
	l.noteAnswer(sent)
	return nil
}

// nextArrived returns the oldest request in flight if it concerns no watches and the frame at this offset of the buffer
// is its answer, and the offset of the next frame.
func (l *link) nextArrived(at int) (r *Request, after int, ok bool) {
	xid, after, ok := l.frames.ahead(at)
	r = l.flight.peek()
	return r, after, ok && r != nil && r.xid == xid && !concernsWatches(r)
}

// silent returns an error if the oldest request in flight, or that of the watches if all others wait for it, has waited
// for half of the session timeout, while the server answers pings: its answer is lost, and nothing is sent before it
// comes. There are three pings in a session timeout, so that the connection ends before the session could. c.mu is
// held.
func (l *link) silent() error {
	op, sent := l.watchesOp, l.watchesSent
	if !l.watchesFirst {
		r := l.flight.peek()
		if r == nil {
			return nil
		}
		op, sent = r.Op, r.sent
	}
	if since := time.Duration(l.frames.readAt - sent); since > l.c.SessionTimeout()/2 {
		return fmt.Errorf("no answer to %s for %v, though pings are answered", op, since.Round(time.Millisecond))
	}
	return nil
}

// popFlight removes the oldest request from the flight: its answer was read. c.mu is held.
func (l *link) popFlight() {
	r := l.flight.pop()
	if !r.replaced {
		l.c.hosts.answered(r.Op)
		if r.EndsConnections() {
			l.c.hosts.forgetEnder(r)
		}
		r.hangUps = 0
	}
	now := l.frames.readAt
	l.windows.answered(r.Op, now-r.sent, now)
	l.answerReadAt = now
	l.unanswered -= int(r.size)
}

// refilled encodes waiting requests after answers have made room. c.mu is held.
func (l *link) refilled() {
	l.refill(l.frames.readAt)
	l.settle()
	l.c.wakeFlusher(l) // the reader never writes: both ends could wait for each other with full buffers
}

func (c *Conn) fire(ev jute.WatcherEvent) {
	c.notify(ev.Type, ev.Path)
	if parent := c.changedParent(ev); parent != "" {
		c.notify(zk.EventNodeChildrenChanged, parent)
	}
}

func (c *Conn) notify(ev zk.EventType, path string) {
	c.mu.Lock()
	watchers := c.watches.fired(ev, path)
	c.watches.traffic.updatePath(path, func(p *pathTraffic) { p.orphaned = false })
	c.mu.Unlock()
	out := zk.Event{Type: ev, State: zk.StateHasSession, Path: stripChroot(path, c.cfg.Chroot)}
	for _, w := range watchers {
		w.Notify(out)
	}
}

// endPersistentWatches removes the persistent watches, which a server before 3.6 cannot set again, and notifies their
// watchers.
func (c *Conn) endPersistentWatches() {
	c.mu.Lock()
	ended := c.watches.takePersistent()
	c.mu.Unlock()
	for path, set := range ended {
		ev := zk.Event{
			Type: zk.EventNotWatching, State: zk.StateDisconnected, Path: stripChroot(path, c.cfg.Chroot),
			Err: jute.ErrUnimplemented,
		}
		for w := range set.all() {
			w.Notify(ev)
		}
	}
}

// notifyRemoved notifies watchers of a path that all its watchers were removed.
func (c *Conn) notifyRemoved(watchers []Watcher, path string) {
	for _, w := range watchers {
		w.Notify(zk.Event{Type: zk.EventNotWatching, State: zk.StateHasSession, Path: stripChroot(path, c.cfg.Chroot)})
	}
}

// changedParent returns the parent of a node that was created or deleted, if the parent has a recursive watch and
// another one on its children; else "". A server before 3.9 keeps the recursive one alone, and does not report that the
// children have changed.
func (c *Conn) changedParent(ev jute.WatcherEvent) string {
	i := strings.LastIndexByte(ev.Path, '/')
	if i < 0 || ev.Path == "/" || ev.Type != zk.EventNodeCreated && ev.Type != zk.EventNodeDeleted {
		return ""
	}
	parent := ev.Path[:max(i, 1)]
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := &c.watches.sets
	if sets[kindRecursive][parent] == nil || sets[kindPersistent][parent] == nil && sets[kindChild][parent] == nil {
		return ""
	}
	return parent
}

// lost runs on the reader, the last user of l. It fails the requests in flight, in order, after every answer that has
// arrived, and gives back the unsent ones.
func (l *link) lost() {
	l.cut()
	c := l.c
	c.mu.Lock()
	l.dead = true
	wasLinked := c.link == l
	c.mu.Unlock()
	l.noteHangUp()
	l.drain()
	if c.ctx.Err() == nil || wasLinked {
		c.down(wasLinked)
	}
	l.setOver()
}

func (l *link) setOver() { l.overOnce.Do(func() { close(l.over) }) }
