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

// tell has the listeners called, behind the calls before.
func (e *engine) tell(n note) {
	n.ready = e.isReady()
	n.event.ready = n.ready
	e.told.Do(func() {
		if e.ctx.Err() == nil {
			e.listener(context.WithoutCancel(e.ctx), n)
		}
	})
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

// guard returns what calls the listeners of the cache.
func (e *engine) guard() func(fn func()) { return guard(e.ctx, e.client, e.what) }

// guard returns what calls listeners until ctx ends: a panic in one is reported and ends nothing.
func guard(ctx context.Context, client Client, what string) func(fn func()) {
	call := lineup.Guard(context.WithoutCancel(ctx), client, what)
	return func(fn func()) {
		if ctx.Err() == nil {
			call(fn)
		}
	}
}
