package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// onEvent queues an event of a watch. It runs on the dispatcher of the client.
func (e *engine) onEvent(_ context.Context, ev zk.Event) {
	e.inbox.put(func() { e.hint(ev) })
}

// hint makes the node of an event wanted.
func (e *engine) hint(ev zk.Event) {
	switch ev.Type {
	case zk.EventSession:
		e.sessionChanged(ev.State)
	case zk.EventNodeDataChanged:
		if n := e.node(ev.Path); n != nil {
			e.want(n, data, e.epoch())
		}
	case zk.EventNodeCreated:
		if n := e.node(ev.Path); n != nil {
			e.suspect(n, data, e.epoch())
		}
	case zk.EventNodeDeleted:
		if n := e.nodes[ev.Path]; n != nil {
			e.suspect(n, data, e.epoch())
		}
	case zk.EventNodeChildrenChanged:
		if n := e.nodes[ev.Path]; n != nil && e.oneShot && e.hasChildren(n) {
			e.want(n, list, e.epoch())
		}
	}
}

// sessionChanged handles a session event of a watcher. Session events are in order with the node events and the
// answers.
func (e *engine) sessionChanged(state zk.State) {
	switch state {
	case zk.StateDisconnected:
		e.flight = nil
	case zk.StateHasSession, zk.StateConnectedReadOnly:
		if e.flight == nil {
			e.connectAfterJitter()
		}
	case zk.StateExpired, zk.StateAuthFailed:
		e.flight, e.watching = nil, false
		e.connectIfPossible()
	}
}

// connectionChanged handles the states of the connection. They are in no order with the events. The engine needs them
// while no watch is set, because only a watch receives session events: before the first watch, and after all one-shot
// watches have fired.
func (e *engine) connectionChanged(_ context.Context, state framework.ConnectionState) {
	e.inbox.put(func() {
		e.notify(Event{Type: connection, state: state})
		if !state.IsConnected() {
			e.reconnectAt = time.Time{} // the next connection has a delay of its own
		}
		switch {
		case state == framework.Lost:
			e.flight, e.watching = nil, false
		case state.IsConnected() && (!e.watching || e.flight == nil):
			e.connectAfterJitter()
		}
	})
}

// connectIfPossible starts the reads if the client is connected and they are not started.
func (e *engine) connectIfPossible() {
	if e.flight == nil && e.client.IsConnected() {
		e.connectAfterJitter()
	}
}

// connectAfterJitter calls connect. If the first load is complete, it first waits for a random part of
// WithReconnectJitter.
func (e *engine) connectAfterJitter() {
	if e.settings.jitter > 0 && e.loaded {
		now := time.Now()
		if e.reconnectAt.IsZero() {
			e.reconnectAt = now.Add(rand.N(e.settings.jitter))
		}
		if e.flight = nil; now.Before(e.reconnectAt) {
			e.wake(e.reconnectAt.Sub(now))
			return
		}
	}
	e.connect()
}

// connect begins to watch and load on a new connection.
func (e *engine) connect() {
	e.reconnectAt = time.Time{}
	e.flight = builders.Pipelined(e.ctx)
	e.needsSetup = true
	if !e.oneShot || !e.watching {
		e.obs.Reloaded(e.ctx)
		e.wantAll()
	}
}

// wantAll makes every node wanted, from the root down, because any of them may have changed. All fences wait for that.
func (e *engine) wantAll() {
	for level := []*node{e.root}; len(level) > 0; {
		var next []*node
		for _, n := range level {
			if n.live && n.size > largeNode {
				e.suspect(n, check, e.epochs[0])
			} else {
				e.suspect(n, data, e.epochs[0])
			}
			if !e.watching && e.oneShot {
				n.listed = false // the next list sets a watch
			}
			next = append(next, n.kids()...)
		}
		level = next
	}
}

// largeNode is the data size, in bytes, above which the engine reads the Stat of a node before its data. That read is
// a request of its own, because a multiRead has no exists.
const largeNode = 8 << 10

// setUp sends the requests that precede the reads on a new connection: a sync in a new session, and the watch.
func (e *engine) setUp() {
	if !e.needsSetup || e.flight == nil {
		return
	}
	flight := e.flight
	e.needsSetup, e.syncing = false, false
	if !e.watching || e.refused { // the session may be new
		e.syncing = e.loaded
		synced := func(_ context.Context, ev callbacks.Event) {
			e.inbox.put(func() { e.synced(flight, ev.Err) })
		}
		err := e.client.Sync().InBackground(synced).WithUnhandledErrorListener(ignoreError).ForPath(flight, e.root.path)
		if err != nil {
			synced(flight, callbacks.Event{Err: err})
		}
	}
	if e.oneShot {
		return
	}
	answered := func(_ context.Context, ev callbacks.Event) {
		e.inbox.put(func() { e.watchAnswered(flight, ev.Err) })
	}
	err := e.client.Watches().Add().UsingWatcher(e.watcher).InBackground(answered).
		WithUnhandledErrorListener(ignoreError).ForPath(flight, e.root.path)
	if err != nil {
		e.inbox.put(func() { e.watchAnswered(flight, err) })
	}
}

// synced handles the answer to the sync of a new session. A read-only server refuses the sync. It may lag behind the
// nodes in the cache, so a cache that is loaded reads nothing from it. The next connection is in another session.
func (e *engine) synced(flight context.Context, err error) {
	if flight != e.flight {
		return
	}
	e.refused = e.syncing && errors.Is(err, framework.ErrNotReadOnly)
	if e.syncing = false; e.refused {
		e.flight = nil
	}
}

// watchAnswered handles the answer to the request of the recursive watch.
func (e *engine) watchAnswered(flight context.Context, err error) {
	switch {
	case err == nil:
		e.watching, e.watchErr, e.watchFailures = true, nil, 0
	case flight != e.flight:
	case errors.Is(err, framework.ErrUnimplemented): // such a server also closes the connection
		e.oneShot, e.flight = true, nil
		e.connectIfPossible()
	case isTransient(err):
		e.interrupted(flight, err)
	default:
		e.flight, e.watchErr = nil, err
		e.wake(pauseAfter(e.watchFailures))
		e.watchFailures++
	}
}

// interrupted stops the reads on a connection after a transient error. Usually an event announces the next connection.
// The retry covers the case that none does. A client with too many pending operations is still connected, and the watch
// that is set misses nothing, so the reads only pause.
func (e *engine) interrupted(flight context.Context, err error) {
	if flight != e.flight {
		return
	}
	if e.watching && errors.Is(err, framework.ErrTooManyPending) {
		e.paused = true
		e.wake(firstPause)
		return
	}
	e.flight = nil
	e.wake(reconnectPause/2 + rand.N(reconnectPause))
}

const reconnectPause = time.Second

// wake schedules retryDue after a pause, unless it is scheduled earlier.
func (e *engine) wake(pause time.Duration) {
	due := time.Now().Add(pause)
	if e.retry != nil {
		if e.retryAt.Before(due) && e.retryAt.After(time.Now()) {
			return
		}
		e.retry.Stop()
	}
	e.retryAt = due
	e.retry = time.AfterFunc(pause, func() { e.inbox.put(e.retryDue) })
}

// retryDue makes the failed nodes whose pause is over wanted. Those whose pause is almost over come along, so that many
// nodes are read with few requests.
func (e *engine) retryDue() {
	e.paused = false
	e.connectIfPossible()
	now := time.Now()
	next := time.Duration(-1)
	for n, f := range e.failed {
		if n.wanted&data != 0 { // there may be no connection
			continue
		}
		left := f.due.Sub(now)
		if left <= f.pause/4 {
			e.want(n, data, e.epoch())
			f.due, left = now.Add(f.pause), f.pause // unless the answer comes first
		}
		if next < 0 || left < next {
			next = left
		}
	}
	if next >= 0 {
		e.wake(next)
	}
}

// unwatch removes the watches in the background.
func (e *engine) unwatch() {
	ctx := context.WithoutCancel(e.ctx)
	remove := e.client.Watches().Remove(e.watcher).Guaranteed().Quietly().InBackground(waitqueue.Ignore).
		WithUnhandledErrorListener(ignoreError)
	if !e.oneShot {
		_ = remove.ForPath(ctx, e.root.path)
		return
	}
	for path := range e.nodes {
		_ = remove.ForPath(ctx, path)
	}
}
