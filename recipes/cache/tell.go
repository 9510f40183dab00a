package cache

import (
	"context"

	"github.com/gocurator/curator/framework"
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

// tell has the listeners called, behind the calls before.
func (e *engine) tell(n note) {
	n.ready = e.isReady()
	n.event.ready = n.ready
	e.do(func(ctx context.Context) {
		if n.ready && n.event.New != nil { // else its age is no lag
			e.obs.Notified(ctx, n.event.New.Stat.Mtime)
		}
		e.listener(ctx, n)
	})
}

func (e *engine) tellEvent(ev Event) {
	e.ahead = false
	switch ev.Type {
	case NodeCreated:
		e.obs.Created(e.ctx)
	case NodeChanged:
		e.obs.Changed(e.ctx)
	case NodeDeleted:
		e.obs.Deleted(e.ctx)
	}
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
