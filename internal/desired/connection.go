package desired

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// manyNodes is the number of desired nodes of a parent from which on they share a recursive watch.
const manyNodes = 8

// pipeline is the context of the requests of one connection.
type pipeline = context.Context

// connection is the part of a reconciler that a new connection changes.
type connection struct {
	watcher *callbacks.Watcher // of the next one-shot watches
	shared  *callbacks.Watcher // of the next recursive watches: a removal of one kind leaves the other, also on one path
	flight  pipeline           // pipeline of the requests of this connection; nil without a connection
	session int64              // of the last flight; noSession when it has ended
	oneShot bool               // in this session: the servers have only one-shot watches
	behind  bool               // the server may not know yet what a create without an answer has done
	syncing bool               // a sync is under way
}

// noSession is the id of no session.
const noSession = -1

// parent is the parent of desired nodes.
type parent struct {
	path      string
	watcher   *callbacks.Watcher // of the recursive watch
	nodes     map[*Node]struct{} // its desired nodes
	watching  bool               // a recursive watch is set in this session, and its nodes rely on it
	mayBeSet  bool               // it may be set in this session, relied on or not
	asked     bool               // it is requested
	unwatched bool               // in this session: the servers refuse the watch, its nodes have one-shot watches
	creating  bool               // it is being created
	waiting   []*Node            // nodes below that wait for its creation, or for what comes of the desired node at path
}

// parentOf returns the parent of a path. The caller holds mu.
func (r *Reconciler) parentOf(path string) *parent {
	above := zkpath.Parent(path)
	p := r.parents[above]
	if p == nil {
		p = &parent{path: above, watcher: r.shared, nodes: make(map[*Node]struct{})}
		r.parents[above] = p
	}
	return p
}

// leave takes a node from its parent, and removes the watches that nobody needs. The caller holds mu.
func (r *Reconciler) leave(n *Node) {
	p := n.parent
	if delete(p.nodes, n); len(p.nodes) == 0 {
		delete(r.parents, p.path)
		if (p.mayBeSet || p.asked) && !r.closed {
			r.unwatch(p.watcher, p.path)
		}
	}
	if n.watched && n.named && !r.closed {
		r.unwatch(n.watcher, n.path)
	}
}

// newWatcher returns a watcher. Each gets all session events, so there are few.
func (r *Reconciler) newWatcher() *callbacks.Watcher {
	return callbacks.NewWatcher(func(_ context.Context, ev zk.Event) { r.locked(func() { r.hint(ev) }) })
}

// unwatch removes a watch in the background. It does not block. The next watches have another watcher: the removal may
// be tried again on the next connection, when one of them is set on the same path. The caller holds mu.
func (r *Reconciler) unwatch(w *callbacks.Watcher, path string) {
	switch w {
	case r.watcher:
		r.watcher = r.newWatcher()
	case r.shared:
		r.shared = r.newWatcher()
	}
	_ = r.client.Watches().Remove(w).Guaranteed().Quietly().InBackground(waitqueue.Ignore).
		WithUnhandledErrorListener(ignoreError).ForPath(r.ctx, path)
}

// sharesWatch reports whether the nodes of a parent have a recursive watch. The caller holds mu.
func (r *Reconciler) sharesWatch(p *parent) bool {
	return !r.oneShot && !p.unwatched && (len(p.nodes) >= manyNodes || p.watching || p.asked)
}

// connect begins to send on a new connection. In a new session no watch is set and no node is ours. In the same session
// a recursive watch has missed events, and a one-shot watch has not. The caller holds mu.
func (r *Reconciler) connect() {
	if r.flight != nil {
		return
	}
	flight, session := hook.PipelinedNow(r.ctx, r.client)
	if session == 0 {
		return
	}
	if session != r.session {
		r.session = session
		r.sessions[session] = true
		r.sessionLost()
		r.meetServers()
	}
	r.flight, r.syncing = flight, false
	for _, p := range r.parents {
		p.asked, p.creating, p.waiting = false, false, nil
		r.wantWatch(p)
	}
	for n := range r.nodes {
		if n.hangUps >= maxHangUps && !n.retryAt.IsZero() { // it would end this connection, too
			continue
		}
		// A write that waits for the connection may meet the node of another program, with the same version as ours.
		if !n.watched || r.sharesWatch(n.parent) || n.action != nothing {
			r.want(n, look)
		}
	}
}

// meetServers forgets in a new session what servers have refused in the one before. The client may have taken an ill
// server, or a proxy, for one that lacks a kind of request; or the servers are newer ones by now. The caller holds mu.
func (r *Reconciler) meetServers() {
	r.oneShot = false
	for _, p := range r.parents {
		p.unwatched = false
	}
}

// sessionLost notes that no node is ours. The caller holds mu.
func (r *Reconciler) sessionLost() {
	for _, p := range r.parents {
		p.watching, p.mayBeSet = false, false
	}
	for n := range r.nodes {
		n.watched = false
		if n.spec.Mode.IsEphemeral() {
			r.isMissing(n, framework.ErrSessionLost)
		}
	}
}

// stateChanged handles the states of the connection. They are in no order with the events of the watches, and are
// needed while no watch may have events. The caller holds mu.
func (r *Reconciler) stateChanged(state framework.ConnectionState) {
	if state == framework.Lost && !(r.client.IsConnected() && r.client.SessionID() == r.session) { // or it comes late
		r.session = noSession // the client may still show the one that has ended
		r.sessionLost()
	}
	r.connectionChanged()
}

// connectionChanged ends the flight of a connection that is lost. A state or an event may come so late that the flight
// is already that of the next connection. The caller holds mu.
func (r *Reconciler) connectionChanged() {
	if r.flight != nil && !hook.IsPipelineLive(r.flight) {
		r.flight = nil
	}
}

// hint handles an event of a watch. The caller holds mu.
func (r *Reconciler) hint(ev zk.Event) {
	switch {
	case ev.Type == zk.EventSession:
		if ev.State != zk.StateHasSession {
			r.connectionChanged()
		}
		return
	case ev.Type == zk.EventNotWatching && errors.Is(ev.Err, framework.ErrUnimplemented):
		r.watchOneShot()
		return
	case ev.Type == zk.EventNotWatching:
		r.watchRemoved(ev.Path)
	}
	if n := r.byPath[ev.Path]; n != nil {
		n.watched = false
		r.want(n, look)
	}
}

// watchRemoved sets the recursive watch again that the program has removed. The caller holds mu.
func (r *Reconciler) watchRemoved(path string) {
	p := r.parents[path]
	if p == nil || !p.watching {
		return
	}
	r.unwatched(p)
}

// unwatched looks at the nodes of a parent whose recursive watch is not set. The caller holds mu.
func (r *Reconciler) unwatched(p *parent) {
	p.watching, p.asked = false, false
	r.wantWatch(p)
	for n := range p.nodes {
		r.want(n, look)
	}
}

// watchOneShot continues with one-shot watches in this session. Servers that have no others close the connection, too.
// The caller holds mu.
func (r *Reconciler) watchOneShot() {
	r.oneShot, r.flight = true, nil
	for _, p := range r.parents {
		p.watching, p.asked = false, false
	}
}

// sync brings the server up to date with a create that has no answer: one that goes through another server may be
// behind, and a node that it does not show would be created twice, or left. The caller holds mu.
func (r *Reconciler) sync() (sends []func()) {
	if r.syncing {
		return nil
	}
	r.syncing = true
	flight := r.flight
	return []func(){func() {
		r.submit(flight, r.client.Sync(), "/", func(ev callbacks.Event) {
			switch {
			case flight != r.flight:
				return
			case ev.Err == nil:
				r.behind = false
			case isTransient(ev.Err):
				r.interruptedBy(ev.Err)
			default: // a read-only server, or one that has too much to do
				r.pauseRequests(firstPause)
			}
			r.syncing = false
		})
	}}
}

// wantWatch has the recursive watch of a parent requested, if its nodes share one that is not set. A client may have as
// many parents as nodes, so a plan does not search them. The caller holds mu.
func (r *Reconciler) wantWatch(p *parent) {
	if !p.asked && !p.watching && r.sharesWatch(p) {
		r.toWatch = append(r.toWatch, p)
	}
}

// watch requests the recursive watches that are not set. They are sent before the reads. The caller holds mu.
func (r *Reconciler) watch(sends []func()) []func() {
	flight, parents := r.flight, r.toWatch
	r.toWatch = nil
	for _, p := range parents {
		if p.asked || p.watching || !r.sharesWatch(p) {
			continue
		}
		p.asked = true
		sends = append(sends, func() {
			r.submit(flight, r.client.Watches().Add().UsingWatcher(p.watcher), p.path, func(ev callbacks.Event) {
				r.watchAnswered(flight, p, ev.Err)
			})
		})
	}
	return sends
}

func (r *Reconciler) watchAnswered(flight pipeline, p *parent, err error) {
	if err == nil {
		if p.mayBeSet = true; len(p.nodes) == 0 { // left meanwhile
			r.unwatch(p.watcher, p.path)
		}
	}
	switch {
	case flight != r.flight:
	case err == nil:
		p.watching, p.asked = true, false
	case errors.Is(err, framework.ErrUnimplemented):
		r.watchOneShot()
	case isTransient(err):
		r.interruptedBy(err)
		r.unwatched(p)
	case waitqueue.IsPassing(err):
		r.pauseRequests(pendingPause)
		r.unwatched(p)
	default:
		p.unwatched = true
		r.unwatched(p)
	}
}

// operation is an operation that can run in the background.
type operation interface {
	InBackground(callback callbacks.BackgroundCallback) builders.Background
}

// submit runs an operation in the background. answered runs with mu held, also for an operation that is not accepted.
func (r *Reconciler) submit(flight pipeline, op operation, path string, answered func(callbacks.Event)) {
	callback := func(_ context.Context, ev callbacks.Event) { r.locked(func() { answered(ev) }) }
	err := op.InBackground(callback).WithUnhandledErrorListener(ignoreError).ForPath(flight, path)
	if err != nil {
		callback(flight, callbacks.Event{Err: err})
	}
}

// interruptedBy stops the requests on a connection after a transient error. Usually an event announces the next
// connection; the pause covers the case that none does. A client with too many pending operations is still connected,
// so the requests only pause. The caller holds mu.
func (r *Reconciler) interruptedBy(err error) {
	if errors.Is(err, framework.ErrTooManyPending) {
		r.pauseRequests(pendingPause)
		return
	}
	r.flight = nil
	r.wakeAt(time.Now().Add(reconnectPause/2 + rand.N(reconnectPause)))
}

// pauseRequests sends nothing for a moment. The caller holds mu.
func (r *Reconciler) pauseRequests(pause time.Duration) {
	r.paused = true
	r.wakeAt(time.Now().Add(pause))
}

const (
	reconnectPause = time.Second
	pendingPause   = 100 * time.Millisecond
)

// isTransient reports whether err says nothing about a node: an outage, a closed client or too many pending operations.
func isTransient(err error) bool {
	return waitqueue.IsOutage(err) || errors.Is(err, framework.ErrClosed) || errors.Is(err, framework.ErrTooManyPending) ||
		errors.Is(err, context.Canceled)
}

// ignoreError discards an error that the callback of the operation handles.
func ignoreError(string, error) {}
