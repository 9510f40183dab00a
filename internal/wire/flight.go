package wire

import "sync/atomic"

// Flight has its requests travel on one connection, that of the first. Those that come when it is lost are refused:
// what took effect is a beginning of what was submitted, without a gap. The zero value is ready.
type Flight struct{ on atomic.Pointer[link] }

// accepts reports whether a request of the flight may travel on l.
func (f *Flight) accepts(l *link) bool {
	return f == nil || f.on.CompareAndSwap(nil, l) || f.on.Load() == l
}
