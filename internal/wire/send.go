package wire

import (
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

const (
	// maxUnsent bounds the encoded bytes. Further requests wait; otherwise the pings of the session would wait behind
	// megabytes.
	maxUnsent = 1 << 20

	maxWrite = 64 << 10 // each slice of this size has its own deadline, so a large request may take longer

	// A caller's context bounds its wait. So the caller writes only as much as fits into the buffers of the sockets even
	// if the server reads nothing, and writes a bounded number of times for others. The flusher writes the rest.
	maxInlineWrite  = 32 << 10
	maxInlineWrites = 16
)

// The methods of this file are called with Conn.mu held.

// submit encodes r, or queues it when enough is in flight.
func (l *link) submit(r *Request) {
	r.Err, r.Zxid = nil, 0
	if concernsWatches(r) {
		l.c.watches.submitted(r, r.serverPath(l.c))
	}
	if r.hangUps == 0 && l.c.hosts.anyEnder.Load() && l.c.hosts.isEnder(r) {
		r.hangUps = manyHangUps
	}
	l.startBatch()
	if l.waiting.len() > 0 || !l.hasRoom(r, l.batch) {
		l.waiting.push(r)
		return
	}
	l.encode(r)
}

// withdraw takes r back if it waits.
func (l *link) withdraw(r *Request) bool {
	if !l.waiting.remove(r) {
		return false
	}
	if concernsWatches(r) {
		l.c.watches.withdrawn(r, r.serverPath(l.c))
	}
	return true
}

// hasRoom reports whether r may be encoded now.
func (l *link) hasRoom(r *Request, now int64) bool {
	if l.dead || l.watchesFirst || l.flight.len() >= maxInFlight || len(l.out) >= maxUnsent ||
		l.c.watches.awaitsCover(r, l.c) {
		return false
	}
	oldest := now
	if first := l.flight.peek(); first != nil {
		if l.goesAlone(r) || l.goesAlone(first) { // only heartbeats are behind one that goes alone
			return false
		}
		oldest = first.sent
	}
	return l.windows.admits(r.Op, now, oldest)
}

// refill encodes waiting requests that have room now.
func (l *link) refill(now int64) {
	for r := l.waiting.first; r != nil && l.hasRoom(r, now); r = l.waiting.first {
		l.waiting.remove(r)
		l.startBatch()
		l.encode(r)
	}
}

// settle closes settled when no request waits or is in flight.
func (l *link) settle() {
	if l.settled != nil && l.flight.len()+l.waiting.len() == 0 {
		close(l.settled)
		l.settled = nil
	}
}

// startBatch reads the clock, once for all requests that are written together.
func (l *link) startBatch() {
	if len(l.out) == 0 {
		l.batch = l.c.now()
	}
}

func (l *link) encode(r *Request) {
	c := l.c
	c.xid = c.xid&(firstXid-1) + 1
	r.xid = firstXid + c.xid - 1
	wireOp, flags := r.Op, r.Flags
	if concernsWatches(r) {
		wireOp, flags = l.encodeWatch(r)
	}
	sent := &r.Request
	r.Err = c.hosts.lacks(r.Op)
	if r.replaced = r.Err != nil; r.replaced { // the answer keeps its turn
		wireOp, sent = jute.OpExists, &jute.Request{Op: jute.OpExists, Path: "/"}
	}
	at := len(l.out)
	r.sent, r.encoded, r.wrote = l.batch, true, r.wrote || !r.replaced && isWrite(r.Op)
	b := append(l.out, 0, 0, 0, 0)
	b = jute.AppendRequestHeader(b, jute.RequestHeader{Xid: r.xid, Op: wireOp})
	keep := r.Flags
	r.Flags = flags
	b = jute.AppendRequest(b, r.chroot(c), sent)
	r.Flags = keep
	sized(b[at:])
	l.out = b
	r.size, r.server = int32(len(b)-at), l.address
	l.unanswered += int(r.size)
	l.flight.push(r)
	l.windows.sent(r.Op)
}

// encodeWatch counts r as sent. It returns an opcode and flags that remove no watch of another watcher.
func (l *link) encodeWatch(r *Request) (op jute.Op, flags int32) {
	ws := &l.c.watches
	path := r.serverPath(l.c)
	op, flags = r.Op, r.Flags
	if r.Op == jute.OpRemoveWatches {
		op, flags = ws.removal(r.Flags, path, r.Watcher)
		switch {
		case ws.traffic.staysFor(r, path): // the watch that is being set would be removed too
			op = jute.OpCheckWatches
			ws.traffic.updatePath(path, func(p *pathTraffic) { p.orphaned = true })
		case op == jute.OpRemoveWatches && flags == WatchAny:
			ws.traffic.updatePath(path, func(p *pathTraffic) { p.orphaned = false })
		}
	}
	if r.Op == jute.OpAddWatch && ws.isRecursive(path) {
		flags = PersistentRecursive
	}
	r.Watch = r.Watcher != nil && !ws.isCovered(r, path)
	ws.sent(r, path)
	return op, flags
}

// append encodes a frame of the session itself: credentials or watches.
func (l *link) append(xid int32, op jute.Op, body []byte) {
	l.startBatch()
	at := len(l.out)
	b := append(l.out, 0, 0, 0, 0)
	b = jute.AppendRequestHeader(b, jute.RequestHeader{Xid: xid, Op: op})
	l.out = append(b, body...)
	sized(l.out[at:])
}

// write writes until nothing is left, also bytes that others append meanwhile. inline is for the goroutine of a caller,
// which leaves large writes to the flusher. mu is released while it writes.
func (l *link) write(inline bool) {
	l.writing = true
	if l.flight.len() > 1 { // others have their answers now and submit their next requests: write them together
		l.c.mu.Unlock()
		runtime.Gosched()
		l.c.mu.Lock()
	}
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
		if l.waiting.len() > 0 {
			l.refill(l.c.now())
		}
	}
	l.writing = false
	if err != nil {
		l.broken(err)
		return
	}
	l.c.wakeFlusher(l)
}

// lastAnswers is the time in which the reader may still read answers after a write has failed.
const lastAnswers = time.Second

// broken ends the connection after a failed write. The reader still reads the answers that the server has sent before
// it closed the connection: the last one may say why.
func (l *link) broken(err error) {
	l.dead = true
	if isTimeout(err) {
		l.cut()
		return
	}
	time.AfterFunc(lastAnswers, l.cut)
}

// isTimeout reports whether err is an exceeded deadline.
func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
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
		if b = b[n:]; len(b) > 0 {
			l.partAt.Store(l.c.now())
		}
	}
	return nil
}
