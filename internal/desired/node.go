package desired

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/usercode"
	"github.com/gocurator/curator/zkpath"
)

// EventType is the kind of an [Event].
type EventType int

// The types of events.
const (
	// Present means that the node is there, with the desired data.
	Present EventType = iota + 1
	// Missing means that the node is not there any more: it was deleted, or its session has ended.
	Missing
	// Refused means that the node cannot be created or changed for now. Each error is reported once.
	Refused
)

// Event is a change of a desired node.
type Event struct {
	Type EventType
	Path string // in the namespace, with the actual name
	Err  error  // of Missing and Refused: the reason, without the path
}

// Node is a desired node.
type Node struct {
	r       *Reconciler
	spec    Spec // Data is unused: see data
	onEvent func(Event)
	obs     report.Nodes
	calls   bool          // its writes and reads call providers of the program
	created chan struct{} // closed when the node is present for the first time
	gone    chan struct{} // closed when the node is not desired any more and deleted

	// With r.mu held.
	parent    *parent
	path      string // in the whole tree; of a sequential node without its number while named is false
	local     string // the same in the namespace
	named     bool   // path is the one of the node
	data      []byte
	gen       int           // number of the desired data
	written   int           // number of the data that the node has had
	changed   chan struct{} // closed after the next event; nil if nobody waits
	err       error         // why it is refused; nil if it is not
	refused   int           // number of the data that was the newest at the last refusal
	goneErr   error
	present   bool
	isCreated bool   // created is closed
	removing  bool   // Remove was called
	claimed   bool   // the node may exist because we have created or adopted it
	inherits  bool   // a node before this one, of another kind, is still to be deleted
	uncertain bool   // a create has no answer
	lost      error  // why the last write of the data had no answer; nil once the node is right
	hangUps   int    // how often the connection was lost with this write alone under way
	sent      []byte // the data of that create, of a sequential node
	owner     int64
	version   int32 // of the node; valid while known
	known     bool
	blind     bool               // we may not read the data
	watcher   *callbacks.Watcher // of the one-shot watch; nil before the first
	watched   bool               // a one-shot watch is set in this session
	action    action
	queued    place
	busy      bool    // a request is under way
	preparing bool    // providers of the program are called for its next write
	again     bool    // look again after the request
	alone     bool    // write it in a transaction of its own
	awaits    *parent // where it waits behind a parent
	prepared  *planned
	decoding  *zk.Stat // that of the read whose data providers decode; nil without one. The node is busy meanwhile
	hold      int      // number of the read that a write waits for, so that writes travel together
	rounds    int      // writes of the data of roundsOf since roundsFrom
	roundsOf  int
	tried     bool // a create of a node that we may not read is to show whether it exists
	failures  int  // pauses in a row
	retryAt   time.Time
	touchAt   time.Time // when the data has to be written again

	roundsFrom time.Time
}

func newNode(r *Reconciler, spec Spec, onEvent func(Event)) *Node {
	n := &Node{
		r: r, spec: spec, onEvent: onEvent, created: make(chan struct{}), gone: make(chan struct{}),
		local: spec.Path, named: !spec.Mode.IsSequential(), data: bytes.Clone(spec.Data), gen: 1,
		obs: report.NewNodes(hook.Telemetry(spec.Client), spec.Recipe, spec.Name, spec.Path),
	}
	n.spec.Data, n.calls = nil, hook.HasProviders(spec.Client)
	if n.data == nil {
		n.data = []byte{}
	}
	if spec.ProtectionID != "" {
		n.local = zkpath.ProtectPath(spec.ProtectionID, spec.Path)
	}
	n.path = fullPath(spec.Client, n.local)
	return n
}

// fullPath returns the path in the whole tree.
func fullPath(client *framework.Client, path string) string {
	if ns := client.Namespace(); ns != "" {
		if path == "/" {
			return "/" + ns
		}
		return "/" + ns + path
	}
	return path
}

// Created returns a channel that is closed when the node is present for the first time.
func (n *Node) Created() <-chan struct{} { return n.created }

// State is what is known of a desired node.
type State struct {
	Path    string // in the namespace, with the actual name; "" while that is unknown
	Present bool
	Err     error // why the node cannot be there, without its path; nil if there is no such reason
}

// State returns what is known of the node.
func (n *Node) State() State {
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	s := State{Present: n.present, Err: n.err}
	if n.isDeleted() {
		s.Err = ErrDeleted
	}
	if n.named {
		s.Path = n.local
	}
	return s
}

// Set changes the desired data and does not wait. written reports the number of the change, for [Node.AwaitWritten].
func (n *Node) Set(data []byte) (change int) {
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	n.data = append([]byte{}, data...)
	n.gen++
	n.lost, n.hangUps = nil, 0
	switch {
	case n.removing || n.isGone():
	case n.err != nil: // the servers are asked again
		if errors.Is(n.err, builders.ErrRequestTooLarge) { // which says nothing about the new data
			n.setErr(nil)
		}
		n.retryAt = time.Time{}
		n.r.want(n, look)
	case n.busy:
		n.again = true
	case n.present && n.known:
		n.r.want(n, set)
	case n.present:
		n.r.want(n, look)
	}
	n.r.poke()
	return n.gen
}

// AwaitWritten waits until the node has had the data of a change, or of a later one. It fails with the reason if the
// node is refused from then on, and with framework.ErrClosed if it is removed. The error of ctx is joined with the
// reason of an earlier refusal, of a lost write, or for which there is no connection.
func (n *Node) AwaitWritten(ctx context.Context, change int) error {
	return n.await(ctx, change, false)
}

// AwaitOurs is [Node.AwaitWritten], and also waits until a node that belongs to somebody else has gone. The error of
// ctx is joined with that reason.
func (n *Node) AwaitOurs(ctx context.Context, change int) error { return n.await(ctx, change, true) }

func (n *Node) await(ctx context.Context, change int, foreign bool) error {
	for {
		n.r.mu.Lock()
		written, err, changed := n.written >= change, n.err, n.nextEvent()
		waits := err == nil || n.refused < change || foreign && errors.Is(err, ErrForeign)
		closed, deleted := n.removing || n.isGone(), n.isDeleted()
		n.r.mu.Unlock()
		switch {
		case deleted:
			return ErrDeleted
		case written:
			return nil
		case closed:
			return framework.ErrClosed
		case !waits:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return n.endOf(ctx, err)
		}
	}
}

// AwaitCreated waits until the node is present for the first time. It fails with [ErrDeleted] if the node has ended
// with that since. The error of ctx is joined with the reason for which the node cannot be there, or for which there is
// no connection.
func (n *Node) AwaitCreated(ctx context.Context) error {
	select {
	case <-n.created:
	default:
		select {
		case <-n.created:
		case <-n.gone: // which is created first if it ends with ErrDeleted
		case <-ctx.Done():
			return n.endOf(ctx, n.State().Err)
		}
	}
	n.r.mu.Lock()
	defer n.r.mu.Unlock()
	switch {
	case n.isDeleted():
		return ErrDeleted
	case n.isCreated:
		return nil
	}
	return framework.ErrClosed
}

// Remove makes the node undesired and waits until it is deleted if it is ours, or left if it is to be kept. ctx bounds
// the wait: the deletion goes on in the background until it succeeds or the session of the node has ended. A refusal of
// the server is an error, and the deletion is tried again in the background then, too. A further Remove tries it at
// once.
func (n *Node) Remove(ctx context.Context) error {
	r := n.r
	r.mu.Lock()
	if !n.isGone() && (!n.removing || n.err != nil) {
		r.remove(n)
		r.poke() // also if ctx has ended
	}
	for n.err == nil && !n.isGone() && ctx.Err() == nil {
		changed := n.nextEvent()
		r.mu.Unlock()
		select {
		case <-changed:
		case <-n.gone:
		case <-ctx.Done():
		}
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	switch {
	case n.isGone():
		return n.goneErr
	case n.err != nil:
		return n.err
	}
	return ctx.Err()
}

// Gone returns a channel that is closed when the node is not desired any more and deleted.
func (n *Node) Gone() <-chan struct{} { return n.gone }

// Delete is [Node.Remove], and deletes also a node that is to be kept, or that was there before and was not seen yet.
func (n *Node) Delete(ctx context.Context) error {
	n.r.mu.Lock()
	n.spec.Keep = false
	n.claimed = n.claimed || !n.spec.Mode.IsEphemeral()
	n.r.mu.Unlock()
	return n.Remove(ctx)
}

// isDeleted reports whether the node has ended with [ErrDeleted]. The caller holds r.mu.
func (n *Node) isDeleted() bool { return n.isGone() && errors.Is(n.goneErr, ErrDeleted) }

func (n *Node) isGone() bool {
	select {
	case <-n.gone:
		return true
	default:
		return false
	}
}

// nextEvent returns a channel that is closed after the next event. The caller holds r.mu.
func (n *Node) nextEvent() <-chan struct{} {
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// notify wakes those who wait, and reports an event. The caller holds r.mu.
func (n *Node) notify(ev Event) {
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
	if ev.Type != 0 && n.onEvent != nil && !n.removing {
		ev.Path = n.local
		n.onEvent(ev)
	}
}

// close ends the node with its client. The caller holds r.mu.
func (n *Node) close() {
	var err error
	if !n.spec.Mode.IsEphemeral() && !n.spec.Keep && n.claimed {
		err = framework.ErrClosed
	}
	n.r.forget(n, err)
}

// forget ends the node. The caller holds r.mu.
func (r *Reconciler) forget(n *Node, err error) {
	if n.isGone() {
		return
	}
	ctx := context.WithoutCancel(r.ctx)
	n.obs.Desired(ctx, -1)
	if !n.present {
		n.obs.Missing(ctx, -1)
	}
	n.setErr(nil)
	delete(r.nodes, n)
	if r.byPath[n.path] == n {
		delete(r.byPath, n.path)
	}
	r.resumeBelow(n)
	n.goneErr, n.action = err, nothing
	close(n.gone)
	n.notify(Event{})
	r.leave(n)
}

// setErr notes why the node is refused, and reports whether that is new. The caller holds r.mu.
func (n *Node) setErr(err error) (isNew bool) {
	ctx := context.WithoutCancel(n.r.ctx)
	if (err == nil) != (n.err == nil) {
		if err == nil {
			n.obs.Refused(ctx, -1)
		} else {
			n.obs.Refused(ctx, 1)
		}
	}
	isNew = err != nil && (n.err == nil || reason(n.err) != reason(err))
	n.err = err
	return isNew
}

// reason returns the text of the innermost error, without the stack of a panic. Errors of the program's code need not
// be comparable, and need not be equal if their reason is the same.
func reason(err error) (text string) {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	_ = usercode.Call("an error", func() { text = usercode.WithoutStack(err) }) // its type may be the program's
	return text
}

// isRight notes that the node is as desired. change is the number of its data. The caller holds r.mu.
func (r *Reconciler) isRight(n *Node, change int) {
	n.claimed, n.uncertain, n.alone, n.tried, n.failures, n.retryAt = true, false, false, false, 0, time.Time{}
	n.inherits, n.lost, n.hangUps = false, nil, 0
	n.setErr(nil)
	n.written = max(n.written, change)
	var ev Event
	if !n.present {
		n.present, ev.Type = true, Present
		n.obs.Missing(context.WithoutCancel(r.ctx), -1)
		r.parentIsThere(n)
	}
	if !n.isCreated {
		n.isCreated = true
		close(n.created)
	}
	if n.spec.Touch > 0 {
		if n.touchAt.IsZero() { // it was there before: its TTL may be about to end
			n.touchAt = time.Now()
		}
		if n.touchAt.After(time.Now()) {
			n.retryAt = n.touchAt // a look does not put it off
			r.wakeAt(n.retryAt)
		} else {
			r.want(n, touch) // now: the end of a pause has all nodes looked at
		}
	}
	n.notify(ev)
}

// isMissing notes that the node is not as desired, and why that is so. The caller holds r.mu.
func (r *Reconciler) isMissing(n *Node, why error) {
	n.known = false
	if n.present {
		n.present = false
		n.obs.Missing(context.WithoutCancel(r.ctx), 1)
		n.notify(Event{Type: Missing, Err: why})
	}
}

// foreignTo returns the error of a node that belongs to somebody else.
func foreignTo(owner int64) error {
	if owner == 0 {
		return fmt.Errorf("%w: it is not ephemeral", ErrForeign)
	}
	return fmt.Errorf("%w: session %#x", ErrForeign, owner)
}

// mode returns the mode to create the node with. A sequential node keeps its name.
func (n *Node) mode() builders.CreateMode {
	if !n.named {
		return n.spec.Mode
	}
	switch n.spec.Mode {
	case builders.EphemeralSequential:
		return builders.Ephemeral
	case builders.PersistentSequential:
		return builders.Persistent
	case builders.PersistentSequentialWithTTL:
		return builders.PersistentWithTTL
	}
	return n.spec.Mode
}
