package curatortest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeNetwork is the network of connections in memory.
const pipeNetwork = "memory"

// pipeAddr is the address of every end of a connection in memory.
type pipeAddr struct{}

func (pipeAddr) Network() string { return pipeNetwork }

func (pipeAddr) String() string { return pipeNetwork }

// pipe is an end of a connection in memory. Unlike net.Pipe it has buffers, as a socket has: a writer does not wait for
// the reader until the buffer is full. A wait here is durable for testing/synctest.
type pipe struct {
	in, out *stream
}

// newPipe returns the two ends of a new connection.
func newPipe() (a, b *pipe) {
	x, y := newStream(), newStream()
	return &pipe{in: x, out: y}, &pipe{in: y, out: x}
}

// Read reads the bytes of the other end. After that end is closed it returns the remaining bytes, then io.EOF.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.in.read(b)
	return n, opError("read", err)
}

// Write writes all of b unless it fails.
func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.out.write(b)
	return n, opError("write", err)
}

// CloseWrite ends what the other end reads.
func (p *pipe) CloseWrite() error {
	p.out.endWriting()
	return nil
}

// Close ends both directions.
func (p *pipe) Close() error {
	p.out.endWriting()
	p.in.endReading()
	return nil
}

func (*pipe) LocalAddr() net.Addr { return pipeAddr{} }

func (*pipe) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *pipe) SetDeadline(t time.Time) error {
	p.in.setDeadline(&p.in.reading, t)
	p.out.setDeadline(&p.out.writing, t)
	return nil
}

func (p *pipe) SetReadDeadline(t time.Time) error {
	p.in.setDeadline(&p.in.reading, t)
	return nil
}

func (p *pipe) SetWriteDeadline(t time.Time) error {
	p.out.setDeadline(&p.out.writing, t)
	return nil
}

// opError wraps an error like the network does. It does not wrap io.EOF.
func opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // it is ours, and bare
		return err
	}
	return &net.OpError{Op: op, Net: pipeNetwork, Source: pipeAddr{}, Addr: pipeAddr{}, Err: err}
}

// The first and the largest buffer of a stream.
const (
	streamLeast = 1 << 10
	streamMost  = 64 << 10
)

// stream is one direction of a pipe.
type stream struct {
	mu      sync.Mutex
	changed sync.Cond // of anything below
	buf     []byte    // a ring
	start   int       // of the bytes in it
	size    int       // of the bytes in it
	ended   bool      // the writer has closed
	gone    bool      // the reader has closed
	reading deadline
	writing deadline
}

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.gone:
			return 0, net.ErrClosed
		case s.reading.passed:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case s.size > 0:
			return s.take(b), nil
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return n, net.ErrClosed
		case s.writing.passed:
			return n, os.ErrDeadlineExceeded
		case s.gone:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case n == len(b):
			return n, nil
		case s.size < streamMost:
			n += s.put(b[n:])
			continue
		}
		s.changed.Wait()
	}
}

// take moves bytes out of the buffer.
func (s *stream) take(b []byte) int {
	n := min(len(b), s.size)
	b = b[:n]
	k := copy(b, s.buf[s.start:])
	copy(b[k:], s.buf)
	s.start = (s.start + n) % len(s.buf)
	s.size -= n
	s.changed.Broadcast()
	return n
}

// put moves as many bytes into the buffer as fit.
func (s *stream) put(b []byte) int {
	n := min(len(b), streamMost-s.size)
	if need := s.size + n; need > len(s.buf) {
		grown := make([]byte, min(streamMost, max(streamLeast, 2*len(s.buf), need)))
		k := copy(grown, s.buf[s.start:min(len(s.buf), s.start+s.size)])
		copy(grown[k:s.size], s.buf)
		s.buf, s.start = grown, 0
	}
	b = b[:n]
	k := copy(s.buf[(s.start+s.size)%len(s.buf):], b)
	copy(s.buf, b[k:])
	s.size += n
	s.changed.Broadcast()
	return n
}

func (s *stream) endWriting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.writing.close()
	s.changed.Broadcast()
}

func (s *stream) endReading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.buf, s.start, s.size = nil, 0, 0
	s.reading.close()
	s.changed.Broadcast()
}

// deadline is the deadline of the reads or the writes of a stream.
type deadline struct {
	at     time.Time // zero for none
	passed bool
	over   bool        // its side is closed
	timer  *time.Timer // one for all deadlines; nil before the first
}

func (d *deadline) stop() {
	d.at = time.Time{}
	if d.timer != nil {
		d.timer.Stop()
	}
}

// close ends the deadline for good.
func (d *deadline) close() {
	d.stop()
	d.over = true
}

func (s *stream) setDeadline(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.stop()
	d.passed = false
	defer s.changed.Broadcast()
	if t.IsZero() || d.over {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		return
	}
	d.at = t
	if d.timer != nil {
		d.timer.Reset(wait)
		return
	}
	d.timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.at.IsZero() { // the deadline was lifted when the timer had gone off
			return
		}
		if wait := time.Until(d.at); wait > 0 { // or moved
			d.timer.Reset(wait)
			return
		}
		d.passed = true
		s.changed.Broadcast()
	})
}
