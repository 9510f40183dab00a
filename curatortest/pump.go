package curatortest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// pump forwards one direction of a link. It alone reads from its source and writes to its destination. While it waits,
// all later frames wait.
type pump struct {
	link   *link
	dir    Direction
	r      *bufio.Reader
	w      *bufio.Writer
	dst    net.Conn
	frame  []byte // with its length in front; reused
	ahead  int    // bytes of the frame that were sent ahead
	torn   bool   // a part of a frame was swallowed: the receiver would take the next bytes for that part
	opened bool   // the handshake is over
	last   bool   // the link ends behind the frame
	raw    bool   // the bytes are no frames
}

const pumpBuffer = 16 << 10

func newPump(l *link, dir Direction, src, dst net.Conn) *pump {
	return &pump{
		link: l,
		dir:  dir,
		r:    bufio.NewReaderSize(src, pumpBuffer),
		w:    bufio.NewWriterSize(dst, pumpBuffer),
		dst:  dst,
	}
}

// run forwards until the source ends or the link is cut, and forwards the end.
func (u *pump) run() {
	err := u.forward()
	if errors.Is(err, io.EOF) && u.dir == ToServer && u.link.command.Load() {
		u.halfClose()
		return
	}
	if _, secure := u.dst.(*tls.Conn); secure && errors.Is(err, io.EOF) {
		u.halfClose() // shows that nothing was cut off
	}
	u.link.cut()
}

var errCut = errors.New("link was cut")

func (u *pump) forward() error {
	for {
		err := u.read()
		pass, ok := u.admit()
		switch {
		case !ok:
			return errCut
		case err != nil && pass:
			u.write() // the complete part of a frame
			return errors.Join(err, u.w.Flush())
		case err != nil:
			<-u.link.ctx.Done() // a black hole swallows the end
			return errCut
		case pass && !u.handle():
			return errCut
		}
	}
}

// read reads the next frame, or a part of it before an error. It sends the buffer for the destination before a read
// that blocks.
func (u *pump) read() error {
	u.frame, u.ahead = u.frame[:0], 0
	if cap(u.frame) > frameKept {
		u.frame = nil
	}
	if !u.ready() {
		if err := u.w.Flush(); err != nil {
			return err
		}
	}
	if u.unframed() {
		return u.readRaw()
	}
	head, err := u.r.Peek(lengthSize)
	if err != nil {
		return errors.Join(err, u.fill(len(head)))
	}
	n := frameLength(head)
	switch {
	case !u.opened && u.dir == ToServer && isFourLetterWord(head):
		u.link.command.Store(true)
	case n < 0 || n > maxFrame: // the receiver refuses it
		u.raw = true
	}
	if u.unframed() { // the server's side learns of a command here: the server answers forwarded bytes
		return u.readRaw()
	}
	if u.dir == ToServer && n > u.link.faults.maxRequest {
		if err := u.sendLength(); err != nil {
			return err
		}
	}
	return u.fill(lengthSize + n)
}

// frameKept is the largest frame whose memory is kept for the next one.
const frameKept = 1 << 20

// sendLength sends the length of a frame ahead: a server refuses a frame that is too long by its length.
func (u *pump) sendLength() error {
	if err := u.fill(lengthSize); err != nil {
		return err
	}
	pass, ok := u.admit()
	switch {
	case !ok:
		return errCut
	case !pass:
		u.torn = true
		return nil
	}
	u.write()
	u.ahead = lengthSize
	return u.w.Flush()
}

// fill reads until the frame has size bytes. Memory grows with the bytes that come, not with the length.
func (u *pump) fill(size int) error {
	for len(u.frame) < size {
		have := len(u.frame)
		next := min(size, max(2*have, pumpBuffer))
		u.frame = slices.Grow(u.frame, next-have)[:next]
		n, err := io.ReadFull(u.r, u.frame[have:])
		u.frame = u.frame[:have+n]
		if err != nil {
			return err
		}
	}
	return nil
}

// ready reports whether the next frame can be read without blocking.
func (u *pump) ready() bool {
	if u.unframed() || u.r.Buffered() < lengthSize {
		return false
	}
	head, err := u.r.Peek(lengthSize)
	return err == nil && frameLength(head) <= u.r.Buffered()-lengthSize
}

// unframed reports whether bytes pass unread.
func (u *pump) unframed() bool { return u.raw || u.link.command.Load() }

func (u *pump) readRaw() error {
	if _, err := u.r.Peek(1); err != nil {
		return err
	}
	return u.fill(u.r.Buffered())
}

// admit waits while the connections are frozen. pass reports whether the bytes pass or are lost; ok is false when the
// link is cut.
func (u *pump) admit() (pass, ok bool) {
	if u.link.faults.trouble.Load().frozen > 0 && u.w.Flush() != nil {
		return false, false
	}
	t, ok := u.link.awaitThaw()
	if !ok || !u.torn && !t.swallows(u.dir) {
		return true, ok
	}
	u.torn = u.torn || u.ahead > 0
	return false, u.link.lose()
}

// handle applies the rules to the frame. It returns false when the link is cut.
func (u *pump) handle() bool {
	if u.unframed() {
		return u.write()
	}
	if u.dir == ToServer {
		return u.request()
	}
	return u.reply()
}

func (u *pump) request() bool {
	r := request{message: u.link.message()}
	if u.opened {
		r.readRequest(u.frame[lengthSize:])
	} else {
		u.opened = true
		r.readConnect(u.frame[lengthSize:])
		u.link.session.Store(r.session)
		if u.link.faults.isKilled(r.session) {
			requestUnknownSession(u.frame)
		}
	}
	u.link.record(&r.message, false, jute.ReplyHeader{})
	if r.op == opNone {
		return u.write()
	}
	waited := false
	for _, in := range u.link.faults.match(&r.message) {
		switch {
		case in.rule.Action.refuses():
			in.hit()
			r.code, _ = jute.CodeOf(in.rule.Err)
			r.cuts = r.cuts || in.rule.Action == ReplyErrorThenCut
		case in.rule.Action.onRequest():
			waited = true
			if !u.act(in) {
				return false
			}
		default:
			r.acts = append(r.acts, in)
		}
	}
	if waited {
		if pass, ok := u.admit(); !ok || !pass {
			return ok
		}
	}
	if r.code != jute.CodeOK {
		u.frame = innocent(u.frame, &r.message, u.ahead > 0)
	}
	u.link.push(r)
	if !u.write() {
		return false
	}
	if r.cuts { // nothing behind it is executed
		return u.pause(nil, nil)
	}
	for _, in := range r.acts {
		if in.rule.Action == CutAfter || in.rule.Action == TruncateReply {
			if !u.pause(in.removed, nil) {
				return false
			}
		}
	}
	return true
}

func (u *pump) reply() bool {
	m, header, acts := u.readReply()
	u.link.record(&m, true, header)
	waited, copies := false, 1
	for _, in := range acts {
		if in.over() {
			continue
		}
		switch in.rule.Action {
		case DropReply:
			in.hit()
			return true
		case DuplicateReply:
			in.hit()
			copies++
		default:
			waited = true
			if !u.act(in) {
				return false
			}
		}
	}
	if waited {
		if pass, ok := u.admit(); !ok || !pass {
			return ok
		}
	}
	for range copies {
		if !u.write() {
			return false
		}
	}
	if u.last {
		u.w.Flush() //nolint:errcheck // the link ends anyway
		u.link.cut()
	}
	return !u.last
}

// readReply reads a frame of the server, and finds its request and the rules that wait for it.
func (u *pump) readReply() (message, jute.ReplyHeader, []*Injection) {
	l, frame := u.link, u.frame[lengthSize:]
	if !u.opened {
		u.opened = true
		r, _ := l.pop(0)
		r.op = opConnect
		var h jute.ReplyHeader
		if c, err := jute.DecodeConnectResponse(frame); err == nil {
			if c.TimeoutMs > 0 {
				r.session = c.SessionID
				l.session.Store(c.SessionID)
			} else {
				h.Code = jute.CodeSessionExpired
			}
		}
		return r.message, h, r.acts
	}
	m := l.message()
	h, body, err := jute.DecodeReplyHeader(frame)
	if err != nil {
		return m, jute.ReplyHeader{}, nil
	}
	m.xid = h.Xid
	if h.Xid == jute.XidNotification {
		m.op = opNotification
		if e, err := jute.DecodeWatcherEvent(body); err == nil {
			m.path = e.Path
		}
		return m, h, l.faults.match(&m)
	}
	r, ok := l.pop(h.Xid)
	if !ok {
		return m, h, nil
	}
	if r.code != jute.CodeOK {
		h.Code = r.code
		u.frame = verdict(u.frame, h)
		u.last = r.cuts
	}
	r.session = m.session
	return r.message, h, r.acts
}

// act applies an action that ends the connection or waits. It returns false when the link is cut.
func (u *pump) act(in *Injection) bool {
	switch in.rule.Action {
	case TruncateReply:
		u.w.Write(u.frame[:len(u.frame)/2]) //nolint:errcheck // Flush returns the error, and the end is the same
		fallthrough
	case CutBefore, CutAfter:
		u.w.Flush() //nolint:errcheck // the link ends anyway
		in.count()
		u.link.cut()
		in.announce()
		return false
	case HoldRequest, HoldReply:
		in.hit()
		return u.pause(in.released, nil)
	default:
		t := time.NewTimer(in.rule.Delay)
		defer t.Stop()
		in.hit()
		return u.pause(in.removed, t.C)
	}
}

// pause sends the buffer and waits for either channel. It returns false when the link is cut.
func (u *pump) pause(until <-chan struct{}, end <-chan time.Time) bool {
	if u.w.Flush() != nil {
		return false
	}
	select {
	case <-until:
	case <-end:
	case <-u.link.ctx.Done():
	}
	return u.link.ctx.Err() == nil
}

func (u *pump) write() bool {
	_, err := u.w.Write(u.frame[u.ahead:])
	return err == nil
}

func (u *pump) halfClose() {
	if c, ok := u.dst.(interface{ CloseWrite() error }); ok {
		c.CloseWrite() //nolint:errcheck // the other direction reports it
	}
}
