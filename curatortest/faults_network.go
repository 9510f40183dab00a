package curatortest

import (
	"strconv"
	"sync"
)

// Direction is a direction of the bytes in a connection.
type Direction int

// The directions of [Faults.BlackHole].
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// String returns the name of the constant.
func (d Direction) String() string {
	switch d {
	case ToServer:
		return "ToServer"
	case ToClient:
		return "ToClient"
	case Both:
		return "Both"
	}
	return "Direction(" + strconv.Itoa(int(d)) + ")"
}

// trouble counts the faults of all connections; each may be set several times.
type trouble struct {
	frozen   int
	silent   int
	toServer int
	toClient int
	changed  chan struct{} // closed when another trouble replaces this one
}

func (t *trouble) swallows(d Direction) bool {
	return d&ToServer != 0 && t.toServer > 0 || d&ToClient != 0 && t.toClient > 0
}

// change applies do to the trouble. restore applies undo, once.
func (f *Faults) change(do, undo func(*trouble)) (restore func()) {
	apply := func(change func(*trouble)) {
		f.mu.Lock()
		defer f.mu.Unlock()
		old := f.trouble.Load()
		now := *old
		now.changed = make(chan struct{})
		change(&now)
		f.trouble.Store(&now)
		close(old.changed)
	}
	apply(do)
	return sync.OnceFunc(func() { apply(undo) })
}

// Freeze stops forwarding, in both directions and for new connections too, until thaw. No byte is lost. The end of a
// connection is not forwarded either.
func (f *Faults) Freeze() (thaw func()) {
	return f.change(func(t *trouble) { t.frozen++ }, func(t *trouble) { t.frozen-- })
}

// AcceptSilently makes dead connections of those that are accepted until restore: they stay open and are never
// answered, not after restore either.
func (f *Faults) AcceptSilently() (restore func()) {
	return f.change(func(t *trouble) { t.silent++ }, func(t *trouble) { t.silent-- })
}

// BlackHole swallows all bytes of the direction, like a network that loses every packet. Connections stay open, and no
// side gets the end of the other one. New connections are accepted and swallowed too; the server gets them only if the
// direction is ToClient. When no black hole is left, restore ends the connections that lost bytes.
func (f *Faults) BlackHole(d Direction) (restore func()) {
	toServer, toClient := int(d&ToServer), int(d&ToClient)>>1
	undo := f.change(func(t *trouble) {
		t.toServer += toServer
		t.toClient += toClient
	}, func(t *trouble) {
		t.toServer -= toServer
		t.toClient -= toClient
	})
	return func() {
		undo()
		if !f.trouble.Load().swallows(Both) {
			f.cutIf(func(l *link) bool { return l.lost.Load() })
		}
	}
}
