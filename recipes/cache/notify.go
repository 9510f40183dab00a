package cache

import (
	"context"

	"github.com/gocurator/curator/framework"
)

// note is a notification from an engine to its cache.
type note struct {
	kind  noteKind
	event Event
	state framework.ConnectionState
	first bool // the first note of its kind
	ready bool // the first load is complete
}

// noteKind is the kind of a note.
type noteKind int

const (
	change     noteKind = iota // a node changed
	loaded                     // nothing is pending
	connection                 // the state of the connection changed
)

// notify queues a call of the listener, after the earlier calls.
func (e *engine) notify(n note) {
	n.ready = e.isReady()
	e.do(func(ctx context.Context) {
		if n.ready && n.event.New != nil { // during the first load the age of a node is no lag
			e.obs.Notified(ctx, n.event.New.Stat.Mtime)
		}
		e.listener(ctx, n)
	})
}

// notifyEvent records the change of a node, and sends it to the listener and the followers.
func (e *engine) notifyEvent(ev Event) {
	e.announced = false
	ev.ready = e.isReady()
	switch ev.Type {
	case NodeCreated:
		e.obs.Created(e.ctx)
	case NodeChanged:
		e.obs.Changed(e.ctx)
	case NodeDeleted:
		e.obs.Deleted(e.ctx)
	}
	e.notify(note{kind: change, event: ev})
	for f := range e.followers {
		f.put(ev)
	}
}

// isReady reports whether the first load is complete.
func (e *engine) isReady() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}
