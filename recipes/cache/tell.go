package cache

import (
	"context"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// note is what a cache is told by its engine.
type note struct {
	kind  noteKind
	event Event
	state framework.ConnectionState
	first bool // the first of its kind
	ready bool // everything was read once
}

type noteKind int

const (
	change     noteKind = iota // of a node
	loaded                     // everything is read
	connection                 // its state has changed
)

// tell queues what the listeners are told.
func (e *engine) tell(n note) {
	n.ready = e.isReady()
	n.event.ready = n.ready
	e.outbox.put(n)
}

func (e *engine) tellEvent(ev Event) {
	e.ahead = false
	e.tell(note{kind: change, event: ev})
	for f := range e.followers {
		f.put(ev)
	}
}

func (e *engine) isReady() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// deliver is the goroutine that the listeners are called on, one at a time.
func (e *engine) deliver() {
	finished := false
	defer func() {
		if !finished { // a listener has ended its goroutine, as a test that fails does: the others are still told
			go e.deliver()
		}
	}()
	ctx := context.WithoutCancel(e.ctx)
	for {
		n, ok := e.outbox.next(ctx)
		if !ok {
			break
		}
		e.listener(ctx, n)
	}
	finished = true
}

// guard returns what calls listeners: a panic in one is reported and ends nothing.
func (e *engine) guard(ctx context.Context) func(fn func()) {
	call := lineup.Guard(ctx, e.client, e.what)
	return func(fn func()) {
		if !e.outbox.isClosed() {
			call(fn)
		}
	}
}
