package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// ErrReplyTooLarge is wrapped by the error of a request whose answer is larger than Config.MaxReply.
var ErrReplyTooLarge = errors.New("reply too large")

// Sizes of reads. The buffer takes frames of usual sizes. A larger frame gets its own memory, which grows with the
// bytes that arrive, because the length may be wrong.
const (
	firstBuffer   = 4 << 10 // there are many idle connections
	largestBuffer = 64 << 10
	maxHandshake  = 4 << 10
	maxFrame      = 64 << 20 // the default of Config.MaxReply
	maxSkipped    = 1 << 30  // the longest frame that is skipped; a longer one ends the connection
	replyHeader   = 16
)

// The first two bytes of records of TLS.
const (
	tlsAlert     = 0x1503
	tlsHandshake = 0x1603
)

// frameReader cuts the bytes of a connection into frames. It belongs to the goroutine that reads.
type frameReader struct {
	conn     net.Conn
	clock    func() int64
	maxReply int
	expects  func(xid int32) bool // reports whether xid is the number of the next answer
	progress time.Duration        // the time within which bytes must arrive; 0 leaves the deadline alone

	buf      []byte
	r, w     int
	deadline time.Time
	readAt   int64 // when bytes arrived last
	skipped  int   // the size of the last frame if next returned only its header, else 0

	partAt atomic.Int64 // when the last part of an incomplete frame arrived; any goroutine may read it
}

func newFrameReader(conn net.Conn, clock func() int64, maxReply int, expects func(xid int32) bool) frameReader {
	return frameReader{
		conn: conn, clock: clock, maxReply: maxReply, expects: expects, buf: make([]byte, firstBuffer),
	}
}

// established sets the time within which bytes must arrive.
func (f *frameReader) established(progress time.Duration) { f.progress = progress }

// next returns the next frame with its length, valid until the next call. If the frame is larger than maxReply it
// returns the header alone.
func (f *frameReader) next(established bool) ([]byte, error) {
	f.skipped = 0
	if err := f.fill(4); err != nil {
		return nil, err
	}
	switch n := binary.BigEndian.Uint32(f.buf[f.r:]); {
	case !established && (n>>16 == tlsAlert || n>>16 == tlsHandshake):
		return nil, errors.New("wire: the server answers in TLS: perhaps it has nothing else on this port")
	case n > maxSkipped, !established && n > maxHandshake:
		return nil, fmt.Errorf("wire: frame of %d bytes", n)
	case established && n >= replyHeader && int(n) > f.maxReply && n+4 <= largestBuffer:
		if err := f.fill(8); err != nil {
			return nil, err
		}
		if !f.expects(int32(binary.BigEndian.Uint32(f.buf[f.r+4:]))) { // the limit is for answers alone
			return f.buffered(4 + int(n))
		}
		return f.header(4 + int(n))
	case n+4 <= largestBuffer:
		return f.buffered(4 + int(n))
	case int(n) <= f.maxReply:
		return f.large(4 + int(n))
	default:
		return f.header(4 + int(n))
	}
}

// buffered returns n bytes of the buffer.
func (f *frameReader) buffered(n int) ([]byte, error) {
	if err := f.fill(n); err != nil {
		return nil, err
	}
	b := f.buf[f.r : f.r+n]
	f.r += n
	return b, nil
}

// large returns n bytes in memory of their own.
func (f *frameReader) large(n int) ([]byte, error) {
	b := make([]byte, largestBuffer)
	have := copy(b, f.buf[f.r:f.w])
	f.r, f.w = 0, 0
	for have < n {
		if have == len(b) {
			b = append(make([]byte, 0, min(2*len(b), n)), b...)
			b = b[:cap(b)]
		}
		k, err := f.read(b[have:min(len(b), n)])
		have += k
		f.partAt.Store(f.readAt)
		if err != nil && have < n {
			return nil, err
		}
	}
	return b[:n], nil
}

// header returns the beginning of a frame of n bytes and skips the rest.
func (f *frameReader) header(n int) ([]byte, error) {
	h, err := f.buffered(4 + replyHeader)
	if err != nil {
		return nil, err
	}
	b := append([]byte(nil), h...)
	if !f.expects(int32(binary.BigEndian.Uint32(b[4:]))) {
		return nil, fmt.Errorf("wire: frame of %d bytes", n)
	}
	f.skipped = n - 4
	left := n - len(h)
	k := min(left, f.w-f.r)
	f.r += k
	for left -= k; left > 0; left -= k {
		f.r, f.w = 0, 0
		if k, err = f.read(f.buf[:min(left, len(f.buf))]); err != nil && k < left {
			return nil, err
		}
		f.partAt.Store(f.readAt)
	}
	return b, nil
}

// ahead returns the number of the answer in the frame at an offset of the buffer, and the offset of the next frame. ok
// is false if the frame is not complete, or if next would not return it from the buffer.
func (f *frameReader) ahead(at int) (xid int32, after int, ok bool) {
	if f.w-at < 4+replyHeader {
		return 0, at, false
	}
	n := binary.BigEndian.Uint32(f.buf[at:])
	if n < replyHeader || int64(n) > int64(min(f.maxReply, f.w-at-4)) {
		return 0, at, false
	}
	return int32(binary.BigEndian.Uint32(f.buf[at+4:])), at + 4 + int(n), true
}

// fill reads until n bytes are buffered.
func (f *frameReader) fill(n int) error {
	if f.r == f.w {
		f.r, f.w = 0, 0
	}
	if f.r+n > len(f.buf) {
		buf := f.buf
		if n > len(buf) {
			buf = make([]byte, f.larger(n))
		}
		f.w = copy(buf, f.buf[f.r:f.w])
		f.r, f.buf = 0, buf
	}
	for f.w-f.r < n {
		k, err := f.read(f.buf[f.w:])
		f.w += k
		if err != nil && f.w-f.r < n {
			return err
		}
		if f.w-f.r < n {
			f.partAt.Store(f.readAt)
		}
		if f.w == len(f.buf) && len(f.buf) < largestBuffer && f.r == 0 { // a busy connection gets a larger buffer
			size := f.larger(len(f.buf) + 1)
			f.buf = append(make([]byte, 0, size), f.buf...)[:size]
		}
	}
	return nil
}

// larger returns the size of a buffer for at least n bytes.
func (f *frameReader) larger(n int) int {
	size := len(f.buf)
	for size < n {
		size *= 2
	}
	return size
}

// read reads once, with a deadline.
func (f *frameReader) read(b []byte) (int, error) {
	now := time.Now()
	if f.progress > 0 && f.deadline.Sub(now) < f.progress*7/8 {
		f.deadline = now.Add(f.progress)
		_ = f.conn.SetReadDeadline(f.deadline)
	}
	n, err := f.conn.Read(b)
	f.readAt = f.clock()
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	return n, err
}
