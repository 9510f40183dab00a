package builders

import (
	"context"
	"errors"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/wire"
)

// AddWatchMode is the kind of a persistent watch.
type AddWatchMode int32

// The modes, with the values of the protocol.
const (
	// PersistentWatch watches the node and the list of its children.
	PersistentWatch AddWatchMode = AddWatchMode(wire.Persistent)
	// PersistentRecursiveWatch watches the node and everything below it.
	PersistentRecursiveWatch AddWatchMode = AddWatchMode(wire.PersistentRecursive)
)

// WatcherType selects watches by their kind of event.
type WatcherType int32

// The watcher types, with the values of the protocol.
const (
	ChildrenWatches WatcherType = WatcherType(wire.WatchChildren)
	DataWatches     WatcherType = WatcherType(wire.WatchData)
	AnyWatches      WatcherType = WatcherType(wire.WatchAny)
)

// Watches builds additions and removals of watches. In Java: WatchesBuilder.
type Watches struct{ env *environment }

// Add builds the addition of a persistent watch, which does not end with its first event. The server must be 3.6 or
// newer. The watch survives reconnects, but sends no events for changes during an outage: read the state again then.
func (w Watches) Add() AddWatch { return AddWatch{env: w.env, mode: PersistentRecursiveWatch} }

// Remove builds the removal of one watcher. While it is under way, watch the same path with another watcher only: a
// removal that is tried again on the next connection also removes what its watcher has set meanwhile.
func (w Watches) Remove(watcher *callbacks.Watcher) RemoveWatches {
	return RemoveWatches{env: w.env, watcher: watcher, one: true, typ: AnyWatches}
}

// RemoveAll builds the removal of all watchers of a path that were set through any view of this client. Each of them
// gets an event of type zk.EventNotWatching with the path. Recipes of this module then set their watches again.
func (w Watches) RemoveAll() RemoveWatches { return RemoveWatches{env: w.env, typ: AnyWatches} }

// AddWatch builds an addWatch; it is a value like [Create]. In Java: AddWatchBuilder.
type AddWatch struct {
	env     *environment
	mode    AddWatchMode
	watcher *callbacks.Watcher
}

// WithMode sets the kind of watch; the default is [PersistentRecursiveWatch].
func (a AddWatch) WithMode(m AddWatchMode) AddWatch { a.mode = m; return a }

// UsingWatcher sets the watcher that gets the events.
func (a AddWatch) UsingWatcher(w *callbacks.Watcher) AddWatch { a.watcher = w; return a }

// Watched sends the events to the listeners of the client.
func (a AddWatch) Watched() AddWatch { return a.UsingWatcher(a.env.DefaultWatcher) }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (a AddWatch) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, a.start}
}

// ForPath adds the watch, whether the node exists or not. Errors: a server without persistent watches, and, when the
// retry policy has given up, connection loss.
func (a AddWatch) ForPath(ctx context.Context, path string) error {
	o := &addWatchOp{b: a}
	if err := o.prepare(path); err != nil {
		return err
	}
	return o.foreground(ctx, o)
}

func (a AddWatch) start(ctx context.Context, path string, b background) error {
	o := &addWatchOp{b: a}
	if err := o.prepare(path); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

// addWatchOp is the protocol of an addWatch.
type addWatchOp struct {
	call
	b AddWatch
}

func (o *addWatchOp) prepare(path string) error {
	if err := o.init(o.b.env, callbacks.AddWatch, "addWatch", path, false); err != nil {
		return err
	}
	if o.b.watcher == nil {
		return o.badArguments("no watcher")
	}
	if o.b.mode != PersistentWatch && o.b.mode != PersistentRecursiveWatch {
		return o.badArguments("watch mode %d", o.b.mode)
	}
	return nil
}

// Begin sends the request.
func (o *addWatchOp) Begin() {
	r := jute.Request{Op: jute.OpAddWatch, Path: o.full, Flags: int32(o.b.mode)}
	o.sendWatching(r, o.b.watcher, func() {
		if o.op.Err() == nil {
			o.watched(o.b.watcher, true)
		}
		o.op.Finish(o.op.Err())
	})
}

// Deliver hands the result to the callback.
func (o *addWatchOp) Deliver() { o.deliver(callbacks.Event{}) }

// RemoveWatches builds the removal of watches; it is a value like [Create]. In Java: RemoveWatchesBuilder.
type RemoveWatches struct {
	env        *environment
	watcher    *callbacks.Watcher
	one        bool
	typ        WatcherType
	guaranteed bool
	locally    bool
	quiet      bool
	absolute   bool // the path is that of the server: see ConfigNode
}

// OfType removes only watches of that type; the default is [AnyWatches].
func (r RemoveWatches) OfType(t WatcherType) RemoveWatches { r.typ = t; return r }

// Guaranteed makes sure that the watcher gets no further events even if the removal fails without a connection: the
// watch is not set again on the next connection, nor left on the server. ForPath returns the failure too.
func (r RemoveWatches) Guaranteed() RemoveWatches { r.guaranteed = true; return r }

// Locally removes the watches in the client at once and needs no connection. The server's watches are removed later,
// without a wait.
func (r RemoveWatches) Locally() RemoveWatches { r.locally = true; return r }

// Quietly succeeds if there is no such watch.
func (r RemoveWatches) Quietly() RemoveWatches { r.quiet = true; return r }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil.
func (r RemoveWatches) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, r.start}
}

// ForPath removes the watches. The server's watch ends with its last watcher. Errors: there is no such watch, and, when
// the retry policy has given up, connection loss.
func (r RemoveWatches) ForPath(ctx context.Context, path string) error {
	o := &removeWatchesOp{b: r}
	if err := o.prepare(path); err != nil {
		return err
	}
	err := o.foreground(ctx, o)
	if ctx.Err() != nil { // it never began, or continues in the background
		o.giveUp(err)
	}
	return err
}

func (r RemoveWatches) start(ctx context.Context, path string, b background) error {
	o := &removeWatchesOp{b: r}
	if err := o.prepare(path); err != nil {
		return err
	}
	o.op.Internal = r.guaranteed // a guaranteed removal is not refused
	return o.background(ctx, o, b)
}

// removeWatchesOp is the protocol of a removal.
type removeWatchesOp struct {
	call
	b RemoveWatches
}

func (o *removeWatchesOp) prepare(path string) error {
	if err := o.init(o.b.env, callbacks.RemoveWatches, "removeWatches", path, false); err != nil {
		return err
	}
	if o.b.absolute {
		o.op.SetAbsolute()
		o.full = path
	}
	switch {
	case o.b.one && o.b.watcher == nil:
		return o.badArguments("no watcher")
	case o.b.typ < ChildrenWatches || o.b.typ > AnyWatches:
		return o.badArguments("watcher type %d", o.b.typ)
	}
	return nil
}

// bound returns the watcher to remove; nil is all.
func (o *removeWatchesOp) bound() wire.Watcher {
	if !o.b.one {
		return nil
	}
	return o.env.bind(o.b.watcher, o.op.Absolute())
}

// Begin sends the request.
func (o *removeWatchesOp) Begin() {
	conn := o.env.Executor.Conn()
	if conn == nil || !o.op.Absolute() && !conn.Watches(int32(o.b.typ), o.full, o.bound()) {
		o.removed(jute.ErrNoWatcher)
		return
	}
	if o.b.locally {
		o.forget()
		o.removed(nil)
		return
	}
	o.op.Prepare(jute.Request{Op: jute.OpRemoveWatches, Path: o.full, Flags: int32(o.b.typ)})
	o.op.SetWatcher(o.bound())
	o.op.Send(func() { o.removed(o.op.Err()) })
}

func (o *removeWatchesOp) removed(err error) {
	if err == nil && o.env.watchers != nil {
		o.env.watchers.removed(o.env, o.b.watcher, o.given, o.op.Absolute())
	}
	if err == jute.ErrNoWatcher && o.b.quiet {
		err = nil
	}
	o.op.Finish(err)
}

// forget removes the watches in the client. Those on the server end with the connection.
func (o *removeWatchesOp) forget() {
	if conn := o.env.Executor.Conn(); conn != nil {
		conn.Forget(&wire.Request{
			Request:  jute.Request{Path: o.full, Flags: int32(o.b.typ)},
			Absolute: o.op.Absolute(), Watcher: o.bound(),
		})
	}
}

// CleanUp runs before the next connection, which would set the watch again.
func (o *removeWatchesOp) CleanUp(err error) { o.giveUp(err) }

// giveUp forgets the watches that a guaranteed removal could not remove, whether it was sent or not, or is not known to
// the servers.
func (o *removeWatchesOp) giveUp(err error) {
	if o.b.guaranteed && (exec.IsPassing(err) || errors.Is(err, jute.ErrUnimplemented)) {
		o.forget()
		if o.env.watchers != nil {
			o.env.watchers.removed(o.env, o.b.watcher, o.given, o.op.Absolute())
		}
	}
}

// Deliver hands the result to the callback.
func (o *removeWatchesOp) Deliver() { o.deliver(callbacks.Event{}) }
