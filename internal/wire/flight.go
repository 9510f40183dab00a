package wire

import "sync/atomic"

// Flight keeps its requests on the connection of the first one. After the loss of that connection further requests are
// refused, so the requests that took effect are a prefix of the submitted ones. The zero value is ready.
type Flight struct{ on atomic.Pointer[link] }

// Flight returns a flight whose requests travel on the present connection; nil without a connection.
func (c *Conn) Flight() *Flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || c.link == nil || c.link.dead {
		return nil
	}
	f := new(Flight)
	f.on.Store(c.link)
	return f
}

// IsLive reports whether the flight has a connection, and requests can still travel on it. It is false before a signal of
// the loss of the connection is given to anybody.
func (f *Flight) IsLive() bool {
	l := f.on.Load()
	if l == nil {
		return false
	}
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end == nil && c.link == l && !l.dead
}

// accepts reports whether a request of the flight may travel on l.
func (f *Flight) accepts(l *link) bool {
	return f == nil || f.on.CompareAndSwap(nil, l) || f.on.Load() == l
}
