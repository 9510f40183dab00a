package curatortest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/gocurator/curator/internal/jute"
)

// pump forwards one direction of a link. It alone reads from its source and writes to its destination; what
// makes it wait makes everything behind wait.
type pump struct {
	link   *link
	dir    Direction
	r      *bufio.Reader
	w      *bufio.Writer
	dst    net.Conn
	frame  []byte // with its length in front; reused
	opened bool   // the handshake is behind
}

const pumpBuffer = 64 << 10

func newPump(l *link, dir Direction, src, dst net.Conn) *pump {
	return &pump{
		link: l,
		dir:  dir,
		r:    bufio.NewReaderSize(src, pumpBuffer),
		w:    bufio.NewWriterSize(dst, pumpBuffer),
		dst:  dst,
	}
}

// run forwards until the source ends or the link is cut, and passes the end on.
func (u *pump) run() {
	err := u.forward()
	if errors.Is(err, io.EOF) && u.dir == ToServer && u.link.raw.Load() {
		u.halfClose()
		return
	}
	u.link.cut()
}

var (
	errCut   = errors.New("link was cut")
	errFrame = errors.New("no frame of the protocol")
)

func (u *pump) forward() error {
	for {
		err := u.read()
		pass, ok := u.admit()
		switch {
		case !ok:
			return errCut
		case err != nil && pass:
			return errors.Join(err, u.w.Flush())
		case err != nil:
			<-u.link.ctx.Done() // in a black hole, nobody hears the end
			return errCut
		case pass && !u.handle():
			return errCut
		}
	}
}

// read reads the next frame. What is buffered for the destination is sent before that blocks.
func (u *pump) read() error {
	if !u.ready() {
		if err := u.w.Flush(); err != nil {
			return err
		}
	}
	if u.link.raw.Load() {
		return u.readRaw()
	}
	head, err := u.r.Peek(lengthSize)
	if err != nil {
		return err
	}
	if !u.opened && u.dir == ToServer && isFourLetterWord(head) {
		u.link.raw.Store(true)
	}
	if u.link.raw.Load() { // the server's side learns it here: it answers to what was forwarded
		return u.readRaw()
	}
	n := frameLength(head)
	if n < 0 || n > maxFrame {
		return errFrame
	}
	size := lengthSize + n
	u.frame = slices.Grow(u.frame[:0], size)[:size]
	_, err = io.ReadFull(u.r, u.frame)
	return err
}

// ready tells whether the next frame can be read without blocking.
func (u *pump) ready() bool {
	if u.link.raw.Load() || u.r.Buffered() < lengthSize {
		return false
	}
	head, err := u.r.Peek(lengthSize)
	return err == nil && frameLength(head) <= u.r.Buffered()-lengthSize
}

func (u *pump) readRaw() error {
	if _, err := u.r.Peek(1); err != nil {
		return err
	}
	u.frame = slices.Grow(u.frame[:0], u.r.Buffered())[:u.r.Buffered()]
	_, err := io.ReadFull(u.r, u.frame)
	return err
}

// admit waits while the proxy is frozen and tells whether what was read may pass, or else is lost; ok is
// false when the link is cut.
func (u *pump) admit() (pass, ok bool) {
	if u.link.proxy.faults.Load().frozen > 0 && u.w.Flush() != nil {
		return false, false
	}
	f, ok := u.link.awaitThaw()
	if !ok || !f.swallows(u.dir) {
		return true, ok
	}
	return false, u.link.lose()
}

// handle does with the frame what the rules say; it returns false when that has cut the link.
func (u *pump) handle() bool {
	if u.link.raw.Load() {
		return u.write()
	}
	if u.dir == ToServer {
		return u.request()
	}
	return u.reply()
}

func (u *pump) request() bool {
	var m message
	if u.opened {
		m = readRequest(u.link.session.Load(), u.frame[lengthSize:])
	} else {
		u.opened = true
		m = readConnect(u.frame[lengthSize:])
		u.link.session.Store(m.session)
	}
	u.link.record(&m, false, jute.ReplyHeader{})
	acts := u.link.proxy.match(&m)
	var later []*Injection
	waited := false
	for _, in := range acts {
		if !in.rule.Action.onRequest() {
			later = append(later, in)
			continue
		}
		waited = true
		if !u.act(in) {
			return false
		}
	}
	if waited {
		if pass, ok := u.admit(); !ok || !pass {
			return ok
		}
	}
	u.link.push(request{message: m, acts: later})
	if !u.write() {
		return false
	}
	for _, in := range later {
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
	waited := false
	for _, in := range acts {
		if in.over() {
			continue
		}
		if in.rule.Action == DropReply {
			in.hit()
			return true
		}
		waited = true
		if !u.act(in) {
			return false
		}
	}
	if waited {
		if pass, ok := u.admit(); !ok || !pass {
			return ok
		}
	}
	return u.write()
}

// readReply reads a frame of the server and finds the request it answers and the rules that wait for it.
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
	h, body, err := jute.DecodeReplyHeader(frame)
	if err != nil {
		return message{session: l.session.Load()}, jute.ReplyHeader{}, nil
	}
	if h.Xid == jute.XidNotification {
		m := message{session: l.session.Load(), xid: h.Xid, op: opNotification}
		if e, err := jute.DecodeWatcherEvent(body); err == nil {
			m.paths = []string{e.Path}
		}
		return m, h, l.proxy.match(&m)
	}
	r, ok := l.pop(h.Xid)
	if !ok {
		r.xid = h.Xid
	}
	r.session = l.session.Load()
	return r.message, h, r.acts
}

// act does what a rule says, DropReply aside; it returns false when that has cut the link.
func (u *pump) act(in *Injection) bool {
	switch in.rule.Action {
	case TruncateReply:
		u.w.Write(u.frame[:len(u.frame)/2]) //nolint:errcheck // Flush tells, and the end is the same
		fallthrough
	case CutBefore, CutAfter:
		u.w.Flush() //nolint:errcheck // the link ends anyway
		u.link.cut()
		in.hit()
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

// pause sends what is buffered and waits for either channel. It returns false when the link is cut.
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
	_, err := u.w.Write(u.frame)
	return err == nil
}

func (u *pump) halfClose() {
	if c, ok := u.dst.(*net.TCPConn); ok {
		c.CloseWrite() //nolint:errcheck // the other direction tells
	}
}
