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
	"github.com/gocurator/curator/internal/waitqueue"
)

// hint makes the node of an event wanted.
func (e *engine) hint(ev zk.Event) {
	n := e.nodes[ev.Path]
	if ev.Type == zk.EventNodeDataChanged || ev.Type == zk.EventNodeCreated {
		n = e.node(ev.Path)
	}
	switch {
	case ev.Type == zk.EventSession:
		e.sessionChanged(ev.State)
	case ev.Type == zk.EventNotWatching && errors.Is(ev.Err, framework.ErrUnimplemented): // an older server
		e.watchOneShot()
	case ev.Type == zk.EventNotWatching:
		e.watchRemoved(n)
	case n == nil:
	case ev.Type == zk.EventNodeDataChanged:
		e.want(n, data, e.epoch())
	case ev.Type == zk.EventNodeCreated, ev.Type == zk.EventNodeDeleted:
		e.suspect(n, data, e.epoch())
	case ev.Type == zk.EventNodeChildrenChanged: // only one-shot watches send it
		e.want(n, list, e.epoch())
	}
}

// watchRemoved sets the watch again after the program has removed all watchers of a path. n is the node there, or nil.
// Changes in between had no event. A recursive watch is set and the tree is read as on a new connection.
func (e *engine) watchRemoved(n *node) {
	switch {
	case !e.oneShot:
		e.flight, e.watching = nil, false
		e.connect()
	case n != nil:
		n.listed = false // the next list sets a watch
		e.suspect(n, data, e.epoch())
	}
}

// sessionChanged handles a session event of a watcher. Session events are in order with the node events and the
// answers.
func (e *engine) sessionChanged(state zk.State) {
	switch state {
	case zk.StateDisconnected:
		e.flight = nil
		return
	case zk.StateExpired, zk.StateAuthFailed:
		e.flight, e.watching = nil, false
	}
	e.connect()
}

// connectionChanged handles the states of the connection. They are in no order with the events. The engine needs them
// while no watch is set, because only a watch receives session events: before the first watch, and after all one-shot
// watches have fired.
func (e *engine) connectionChanged(_ context.Context, state framework.ConnectionState) {
	e.post(func() {
		e.notify(Event{Type: connection, state: state})
		e.watching = e.watching && state != framework.Lost
		if !e.watching {
			e.flight = nil
		}
		if !state.IsConnected() {
			e.reconnectAt = time.Time{} // the next connection has a delay of its own
		}
		e.connect()
	})
}

// connect begins to watch and load on a new connection, unless it has done so or there is none. If the first load is
// complete, it first waits for a random part of WithReconnectJitter.
func (e *engine) connect() {
	if e.flight != nil || !e.client.IsConnected() {
		return
	}
	if e.settings.jitter > 0 && e.loaded {
		if e.reconnectAt.IsZero() {
			e.reconnectAt = time.Now().Add(rand.N(e.settings.jitter))
		}
		if left := time.Until(e.reconnectAt); left > 0 {
			e.wake(left)
			return
		}
	}
	e.reconnectAt = time.Time{}
	e.meetServers()
	e.flight = builders.Pipelined(e.ctx)
	e.needsSetup = true
	if !e.oneShot || !e.watching {
		e.obs.Reloaded(e.ctx)
		e.wantAll()
	}
}

// meetServers forgets in a new session what servers have refused in the one before. The client may have taken an ill
// server, or a proxy, for one that lacks a kind of request; or the servers are newer ones by now.
func (e *engine) meetServers() {
	if session := e.client.SessionID(); session != e.session {
		e.session, e.oneShot, e.single = session, e.settings.maxDepth == 0, false
	}
}

// wantAll makes every node wanted, parents before children, because any of them may have changed. All fences wait for
// that.
func (e *engine) wantAll() { e.wantTree(e.root) }

func (e *engine) wantTree(n *node) {
	w := data
	if n.live && n.size > largeNode {
		w = check
	}
	e.suspect(n, w, e.epochs[0])
	if !e.watching && e.oneShot {
		n.listed = false // the next list sets a watch
	}
	for _, kid := range n.kids() {
		e.wantTree(kid)
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
	if !e.watching { // the session may be new
		e.syncing = e.loaded
		e.submit(e.client.Sync(), e.root.path, func(ev callbacks.Event) { e.synced(flight, ev.Err) })
	}
	if !e.oneShot {
		watch := e.client.Watches().Add().UsingWatcher(e.watcher)
		e.submit(watch, e.root.path, func(ev callbacks.Event) { e.watchAnswered(flight, ev.Err) })
	}
}

// operation is an operation of the client that can run in the background.
type operation interface {
	InBackground(callback callbacks.BackgroundCallback) builders.Background
}

// submit runs an operation in the background. answered also receives the error of an operation that cannot be
// submitted.
func (e *engine) submit(op operation, path string, answered func(ev callbacks.Event)) {
	e.request(op, path, func(ev callbacks.Event) { e.post(func() { answered(ev) }) })
}

// request is submit whose answered does not run in the loop.
func (e *engine) request(op operation, path string, answered func(ev callbacks.Event)) {
	callback := func(_ context.Context, ev callbacks.Event) { answered(ev) }
	if err := op.InBackground(callback).WithUnhandledErrorListener(ignoreError).ForPath(e.flight, path); err != nil {
		callback(e.flight, callbacks.Event{Err: err})
	}
}

// synced handles the answer to the sync of a new session. A read-only server refuses the sync. It may lag behind the
// nodes in the cache, so a cache that is loaded reads nothing from it. The next connection is in another session.
func (e *engine) synced(flight context.Context, err error) {
	if flight != e.flight {
		return
	}
	switch {
	case e.syncing && errors.Is(err, framework.ErrNotReadOnly):
		e.flight, e.watching = nil, false
	case e.syncing && waitqueue.IsPassing(err): // the server may lag
		e.interrupted(err)
	}
	e.syncing = false
}

// watchAnswered handles the answer to the request of the recursive watch.
func (e *engine) watchAnswered(flight context.Context, err error) {
	switch {
	case flight != e.flight && !errors.Is(err, framework.ErrUnimplemented): // it says nothing about the next connection
	case err == nil:
		e.watching = true
		e.succeed(e.root, watch)
	case errors.Is(err, framework.ErrUnimplemented):
		e.watchOneShot()
	case isTransient(err):
		e.interrupted(err)
	default:
		e.flight = nil
		e.fail(e.root, watch, err)
	}
}

// watchOneShot continues with one-shot watches, in this session, on a server that has no others. Such a server also
// closes the connection.
func (e *engine) watchOneShot() {
	e.session, e.oneShot, e.watching, e.flight = e.client.SessionID(), true, false, nil
	e.succeed(e.root, watch) // an earlier failure is over
	e.connect()
}

// interrupted stops the reads on a connection after a transient error. Usually an event announces the next connection.
// The retry covers the case that none does. A client with too many pending operations is still connected, and the watch
// that is set misses nothing, so the reads only pause.
func (e *engine) interrupted(err error) {
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
	if due := time.Now().Add(pause); e.retryAt.IsZero() || due.Before(e.retryAt) {
		e.retryAt = due
		e.retry.Reset(pause)
	}
}

// retryDue reads all failed nodes together, so that they take few requests.
func (e *engine) retryDue() {
	e.retryAt, e.paused = time.Time{}, false
	e.retries++
	e.readFailed()
}

// readFailed makes all failed nodes wanted. It also sets a watch that could not be set.
func (e *engine) readFailed() {
	for n := range e.failed {
		e.want(n, data, e.epoch())
	}
	e.connect()
}
