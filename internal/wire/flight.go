package wire

import "sync/atomic"

// Flight keeps its requests on the connection of the first one. After the loss of that connection further requests are
// refused, so the requests that took effect are a prefix of the submitted ones. The zero value is ready.
type Flight struct{ on atomic.Pointer[link] }

// accepts reports whether a request of the flight may travel on l.
func (f *Flight) accepts(l *link) bool {
	return f == nil || f.on.CompareAndSwap(nil, l) || f.on.Load() == l
}
