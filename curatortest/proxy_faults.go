package curatortest

import (
	"net"
	"strconv"
	"sync"
	"time"
)

// Direction is a direction of the bytes in a connection.
type Direction int

// The directions of [Proxy.BlackHole].
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

// faults are what is wrong with all connections of a proxy; each is counted, as it may be asked for several
// times.
type faults struct {
	frozen   int
	silent   int
	toServer int
	toClient int
	changed  chan struct{} // closed when other faults replace these
}

func (f *faults) swallows(d Direction) bool {
	return d&ToServer != 0 && f.toServer > 0 || d&ToClient != 0 && f.toClient > 0
}

// change applies do to the faults and returns the func that applies undo, once.
func (p *Proxy) change(do, undo func(*faults)) (restore func()) {
	apply := func(f func(*faults)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		old := p.faults.Load()
		now := *old
		now.changed = make(chan struct{})
		f(&now)
		p.faults.Store(&now)
		close(old.changed)
	}
	apply(do)
	return sync.OnceFunc(func() { apply(undo) })
}

// Freeze stops forwarding, in both directions and for new connections too, until thaw. Nothing is lost, and
// that a side has closed its connection is not passed on either.
func (p *Proxy) Freeze() (thaw func()) {
	return p.change(func(f *faults) { f.frozen++ }, func(f *faults) { f.frozen-- })
}

// AcceptSilently makes connections that are accepted until restore dead ones: they stay open and are never
// answered, not after restore either.
func (p *Proxy) AcceptSilently() (restore func()) {
	return p.change(func(f *faults) { f.silent++ }, func(f *faults) { f.silent-- })
}

// BlackHole swallows what is sent in the direction, as a network does that loses every packet: connections
// stay open and no side learns that the other has closed its end. New connections can be made and are
// swallowed too; the server does not hear of them unless the direction is ToClient. When no black hole is
// left, restore ends the connections that lost something.
func (p *Proxy) BlackHole(d Direction) (restore func()) {
	toServer, toClient := int(d&ToServer), int(d&ToClient)>>1
	undo := p.change(func(f *faults) {
		f.toServer += toServer
		f.toClient += toClient
	}, func(f *faults) {
		f.toServer -= toServer
		f.toClient -= toClient
	})
	return func() {
		undo()
		if !p.faults.Load().swallows(Both) {
			p.cutIf(func(l *link) bool { return l.lost.Load() })
		}
	}
}

// RefuseConnects refuses new connections until restore; open ones go on. restore returns when the proxy
// listens on its port again: should somebody else have got hold of the port, when it is free.
func (p *Proxy) RefuseConnects() (restore func()) {
	p.listening.Lock()
	defer p.listening.Unlock()
	p.refusals++
	if p.listener != nil {
		p.listener.Close() //nolint:errcheck // it is closed in any case
		p.listener = nil
	}
	return sync.OnceFunc(p.listenAgain)
}

// listenPause is the pause between two attempts to get the port back.
const listenPause = 5 * time.Millisecond

func (p *Proxy) listenAgain() {
	p.listening.Lock()
	defer p.listening.Unlock()
	p.refusals--
	if p.refusals > 0 {
		return
	}
	t := time.NewTicker(listenPause)
	defer t.Stop()
	for p.ctx.Err() == nil {
		l, err := net.Listen("tcp", p.addr)
		if err == nil {
			p.serve(l)
			return
		}
		select { // a connection of somebody else may have been given the port for its own end
		case <-t.C:
		case <-p.ctx.Done():
		}
	}
}
