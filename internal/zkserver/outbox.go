package zkserver

import (
	"net"
	"sync"
)

// outbox holds the frames to send on a connection. No sender waits for the reader.
type outbox struct {
	mu     sync.Mutex
	filled sync.Cond
	buffer []byte
	last   bool // no frame is added any more
	gone   bool // the buffered frames are not sent
}

func newOutbox() *outbox {
	o := &outbox{}
	o.filled.L = &o.mu
	return o
}

// add appends a frame; fill writes its content behind the length.
func (o *outbox) add(fill func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last {
		return
	}
	o.buffer = appendFrame(o.buffer, fill)
	o.filled.Signal()
}

// addRaw appends bytes without a length.
func (o *outbox) addRaw(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last {
		return
	}
	o.buffer = append(o.buffer, b...)
	o.filled.Signal()
}

// finish ends the outbox after all its frames are sent.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = true
	o.filled.Signal()
}

// drop ends the outbox at once, without its frames.
func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.gone = true, true
	o.filled.Signal()
}

// send sends frames to nc until the outbox or the connection ends.
func (o *outbox) send(nc net.Conn) {
	var spare []byte
	for {
		o.mu.Lock()
		for len(o.buffer) == 0 && !o.last {
			o.filled.Wait()
		}
		b, end := o.buffer, o.gone || o.last && len(o.buffer) == 0
		o.buffer = spare[:0]
		o.mu.Unlock()
		if end {
			return
		}
		if _, err := nc.Write(b); err != nil {
			o.drop()
			return
		}
		spare = b
	}
}
