package builders

import (
	"context"

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

// WatcherType selects watches by what they watch.
type WatcherType int32

// The watcher types, with the values of the protocol.
const (
	ChildrenWatches WatcherType = WatcherType(wire.WatchChildren)
	DataWatches     WatcherType = WatcherType(wire.WatchData)
	AnyWatches      WatcherType = WatcherType(wire.WatchAny)
)

// Watches builds the adding and removing of watches. In Java: WatchesBuilder.
type Watches struct{ env *environment }

// Add builds the adding of a persistent watch, which does not end with its first event. The server must be 3.6 or
// newer. It survives reconnects, but gives no events of changes during an outage: read the state again then.
func (w Watches) Add() AddWatch { return AddWatch{env: w.env, mode: PersistentRecursiveWatch} }

// Remove builds the removal of one watcher.
func (w Watches) Remove(watcher *callbacks.Watcher) RemoveWatches {
	return RemoveWatches{env: w.env, watcher: watcher, one: true, typ: AnyWatches}
}

// RemoveAll builds the removal of all watchers of a path that were set through any view of this client.
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

// Watched gives the events to the listeners of the client.
func (a AddWatch) Watched() AddWatch { return a.UsingWatcher(a.env.DefaultWatcher) }

// InBackground makes it run in the background; its result goes to cb, or to the client's listeners if cb is nil.
func (a AddWatch) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, a.start}
}

// ForPath adds the watch, whether the node exists or not. Errors: server without persistent watches, and, when the
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

// Begin asks.
func (o *addWatchOp) Begin() {
	r := jute.Request{Op: jute.OpAddWatch, Path: o.full, Flags: int32(o.b.mode)}
	o.askWatching(r, o.b.watcher, func() {
		if o.Request.Err == nil {
			o.watched(o.b.watcher, true)
		}
		o.Finish(o.Request.Err)
	})
}

// Run delivers the result.
func (o *addWatchOp) Run() { o.deliver(callbacks.Event{}) }

// RemoveWatches builds the removal of watches; it is a value like [Create]. In Java: RemoveWatchesBuilder.
type RemoveWatches struct {
	env        *environment
	watcher    *callbacks.Watcher
	one        bool
	typ        WatcherType
	guaranteed bool
	locally    bool
	quiet      bool
	absolute   bool // the path is that of the server, see ConfigNode
}

// OfType removes only watches of that type; the default is [AnyWatches].
func (r RemoveWatches) OfType(t WatcherType) RemoveWatches { r.typ = t; return r }

// Guaranteed makes sure that the watcher gets no further events even if the removal fails without a connection: the
// watch is not set again on the next connection, nor left on the server. The failure is returned all the same.
func (r RemoveWatches) Guaranteed() RemoveWatches { r.guaranteed = true; return r }

// Locally removes the watches on the side of the client at once, needs no connection, and leaves those on the server
// to be removed when that can be done without waiting.
func (r RemoveWatches) Locally() RemoveWatches { r.locally = true; return r }

// Quietly makes it a success if there is no such watch.
func (r RemoveWatches) Quietly() RemoveWatches { r.quiet = true; return r }

// InBackground makes it run in the background; its result goes to cb, or to the client's listeners if cb is nil.
func (r RemoveWatches) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, r.start}
}

// ForPath removes the watches. The server's watch goes with its last watcher only. Errors: that there is no such
// watch, and, when the retry policy has given up, connection loss.
func (r RemoveWatches) ForPath(ctx context.Context, path string) error {
	o := &removeWatchesOp{b: r}
	if err := o.prepare(path); err != nil {
		return err
	}
	err := o.foreground(ctx, o)
	if ctx.Err() != nil { // it was not begun, or goes on without us
		o.giveUp(err)
	}
	return err
}

func (r RemoveWatches) start(ctx context.Context, path string, b background) error {
	o := &removeWatchesOp{b: r}
	if err := o.prepare(path); err != nil {
		return err
	}
	o.Internal = r.guaranteed // what is promised is not refused
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
		o.Absolute, o.full = true, path
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
	return o.env.bind(o.b.watcher, o.Absolute)
}

// Begin asks.
func (o *removeWatchesOp) Begin() {
	conn := o.env.Executor.Conn()
	if conn == nil || !o.Absolute && !conn.Watches(int32(o.b.typ), o.full, o.bound()) {
		o.removed(jute.ErrNoWatcher)
		return
	}
	if o.b.locally {
		o.forget()
		o.removed(nil)
		return
	}
	o.send()
}

func (o *removeWatchesOp) send() {
	o.Request.Request = jute.Request{Op: jute.OpRemoveWatches, Path: o.full, Flags: int32(o.b.typ)}
	o.Reply, o.Request.Watcher = jute.Reply{}, o.bound()
	o.Send(func() { o.removed(o.Request.Err) })
}

func (o *removeWatchesOp) removed(err error) {
	if err == nil && o.env.watchers != nil {
		o.env.watchers.removed(o.env, o.b.watcher, o.given, o.Absolute)
	}
	if err == jute.ErrNoWatcher && o.b.quiet {
		err = nil
	}
	o.Finish(err)
}

// forget removes the watches on our side. With the connection those on the server's side go.
func (o *removeWatchesOp) forget() {
	if conn := o.env.Executor.Conn(); conn != nil {
		conn.Forget(&wire.Request{
			Request:  jute.Request{Path: o.full, Flags: int32(o.b.typ)},
			Absolute: o.Absolute, Watcher: o.bound(),
		})
	}
}

// CleanUp comes before there can be another connection, on which the watch would be set again.
func (o *removeWatchesOp) CleanUp(err error) { o.giveUp(err) }

// giveUp forgets what a guaranteed removal could not remove, whether it was sent or not.
func (o *removeWatchesOp) giveUp(err error) {
	if o.b.guaranteed && exec.IsIndefinite(err) {
		o.forget()
		if o.env.watchers != nil {
			o.env.watchers.removed(o.env, o.b.watcher, o.given, o.Absolute)
		}
	}
}

// Run delivers the result.
func (o *removeWatchesOp) Run() { o.deliver(callbacks.Event{}) }
