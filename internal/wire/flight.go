package wire

import "sync/atomic"

// Flight keeps its requests on the connection of the first one. After the loss of that connection further requests are
// refused, so the requests that took effect are a prefix of the submitted ones. The zero value is ready.
type Flight struct{ on atomic.Pointer[link] }

// Flight returns a flight whose requests travel on the present connection; nil without a connection.
func (c *Conn) Flight() *Flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.live()
	if l == nil {
		return nil
	}
	f := new(Flight)
	f.on.Store(l)
	return f
}

// IsLive reports whether the flight has a connection, and requests can still travel on it. It is false before anybody
// gets a signal of the loss of the connection.
func (f *Flight) IsLive() bool {
	l := f.on.Load()
	if l == nil {
		return false
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.c.live() == l
}

// accepts reports whether a request of the flight may travel on l.
func (f *Flight) accepts(l *link) bool {
	return f == nil || f.on.CompareAndSwap(nil, l) || f.on.Load() == l
}
