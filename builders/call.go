package builders

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/zkpath"
)

// call has the fields and methods that the operations of all verbs share.
type call struct {
	op      exec.Operation
	env     *environment
	typ     callbacks.EventType
	verb    string // for errors and telemetry
	given   string // the path as given
	full    string // and with the namespace
	cb      callbacks.BackgroundCallback
	own     *zk.Stat // memory for the Stat of the event, beside the data; nil if there is none
	onError func(message string, err error)
}

// init prepares an operation on path.
func (c *call) init(env *environment, typ callbacks.EventType, verb, path string, sequential bool) error {
	c.env, c.typ, c.verb, c.given = env, typ, verb, path
	if err := zkpath.Validate(path, sequential); err != nil {
		return c.wrap(err)
	}
	c.full = env.namespace.full(path)
	if sequential && path == "/" && env.namespace.prefix != "" { // an empty name below the namespace
		c.full += path
	}
	return nil
}

func (c *call) wrap(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := err.(*fenceError); ok { //nolint:errorlint // one that is wrapped keeps what it is wrapped with
		err = f.named()
	}
	// The findParent of a create has looked for the chroot.
	if err == zk.ErrNoNode && c.typ != callbacks.Create && !c.op.Absolute() {
		err = c.env.noNode(c.full)
	}
	return &OpError{Op: c.verb, Path: c.given, Attempts: c.op.Attempts(), Err: err}
}

func (c *call) badArguments(format string, args ...any) error {
	return c.wrap(fmt.Errorf("%w: "+format, append([]any{ErrBadArguments}, args...)...))
}

// Describe returns what telemetry records of the operation.
func (c *call) Describe() telemetry.Operation {
	return telemetry.Operation{Name: c.verb, Namespace: c.env.telemetryNamespace, Path: c.given}
}

// recyclable is the protocol of an operation whose memory is used again.
type recyclable[T any] interface {
	exec.Protocol
	exec.Recycler
	result() (T, error)
}

// perform runs p, the protocol of c, and returns its result. The memory of p is used again, unless the caller has given
// up.
func perform[T any](ctx context.Context, c *call, p recyclable[T]) (v T, err error) {
	if err = c.foreground(ctx, p); err == nil {
		v, err = p.result()
	}
	if c.op.IsFree() {
		p.Recycle()
	}
	return v, err
}

// foreground runs p, the protocol of c, and waits.
func (c *call) foreground(ctx context.Context, p exec.Protocol) error {
	if c.env.err != nil {
		return c.wrap(c.env.err)
	}
	c.op.Protocol = p
	if err := c.env.ensureNamespace(); err != nil {
		return c.wrap(err)
	}
	if err := c.env.Executor.Do(ctx, &c.op); err != nil {
		return c.wrap(err)
	}
	return nil
}

// Future is a submitted operation. Wait returns its result.
type Future[T any] struct {
	err  error // not accepted
	op   *exec.Operation
	wait func(ctx context.Context) (T, error)
}

// Done returns a channel that is closed when the operation has ended or a Wait has given up. Wait then returns at once.
func (f Future[T]) Done() <-chan struct{} {
	if f.err != nil {
		return ended
	}
	return f.op.Done()
}

var ended = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Wait returns the result of the operation. ctx bounds the wait, like that of a ForPath. When ctx ends, Wait gives the
// operation up, and every other Wait returns the same error.
func (f Future[T]) Wait(ctx context.Context) (T, error) {
	if f.err != nil {
		var zero T
		return zero, f.err
	}
	return f.wait(ctx)
}

// submit begins p, the protocol of c. result returns its result.
func submit[T any](ctx context.Context, c *call, p exec.Protocol, result func() (T, error)) Future[T] {
	if c.env.err != nil {
		return Future[T]{err: c.wrap(c.env.err)}
	}
	c.op.Protocol = p
	if err := c.env.ensureNamespace(); err != nil {
		return Future[T]{err: c.wrap(err)}
	}
	if err := c.env.Executor.Begin(ctx, &c.op); err != nil {
		return Future[T]{err: c.wrap(err)}
	}
	return Future[T]{op: &c.op, wait: func(ctx context.Context) (zero T, err error) {
		if err := c.env.Executor.Wait(ctx, &c.op); err != nil {
			return zero, c.wrap(err)
		}
		return result()
	}}
}

// background runs p, the protocol of c, and does not wait.
func (c *call) background(ctx context.Context, p exec.Protocol, b background) error {
	if c.env.err != nil {
		return c.wrap(c.env.err)
	}
	c.op.Protocol, c.op.OfLibrary, c.cb, c.onError = p, c.env.library, b.cb, b.onError
	if err := c.env.ensureNamespace(); err != nil {
		return c.wrap(err)
	}
	if err := c.env.Executor.Go(ctx, &c.op); err != nil {
		return c.wrap(err)
	}
	return nil
}

// detached runs p, the protocol of c, until it has ended or the client is closed, without a report. It cleans up after
// the operation of ctx.
func (c *call) detached(ctx context.Context, p exec.Protocol) {
	c.op.Protocol, c.op.Detached = p, true
	_ = c.env.Executor.Go(exec.Detach(ctx), &c.op) // refused: the client is closed
}

// deliver calls the callback with ev and the fields that all events have.
func (c *call) deliver(ev callbacks.Event) {
	if c.op.Detached {
		return
	}
	err := ev.Err
	if err == nil {
		err = c.op.Result()
	}
	ev.Type, ev.Path, ev.Err = c.typ, c.given, c.wrap(err)
	c.env.Deliver(c.op.Context(), c.cb, ev)
	if err == nil || !c.op.GaveUp() {
		return
	}
	c.givenUp(ev.Err)
}

// statCopy returns the Stat of the last answer in memory of its own: a callback or a caller may keep it.
func (c *call) statCopy() *zk.Stat {
	if c.own == nil {
		c.own = new(zk.Stat)
	}
	*c.own = c.op.Reply().Stat
	return c.own
}

// givenUp reports an unhandled failure to the operation's listener, or to the listeners of the client.
func (c *call) givenUp(err error) {
	message := "background operation given up"
	if c.onError != nil {
		c.guard(func() { c.onError(message, err) })
		return
	}
	env, ctx, received := c.env, c.op.Context(), c.cb != nil // another call reuses the memory of c soon
	if env.library {                                         // the listeners are the program's
		env.Dispatch(func(context.Context) { env.GivenUp(ctx, message, err, received) })
		return
	}
	env.GivenUp(ctx, message, err, received)
}

// guard runs the user's code on the dispatcher. It reports a panic like that of a callback.
func (c *call) guard(fn func()) {
	c.env.Deliver(c.op.Context(), func(context.Context, callbacks.Event) { fn() }, callbacks.Event{})
}

// send sends r. next handles the answer; it is Replied if it is nil.
func (c *call) send(r jute.Request, next func()) { c.sendWatching(r, nil, next) }

// sendWatching is send for a request that sets a watch, if w is not nil.
func (c *call) sendWatching(r jute.Request, w *callbacks.Watcher, next func()) {
	if !c.prepare(r) {
		return
	}
	if w != nil {
		c.op.SetWatcher(c.env.bind(w, c.op.Absolute()))
		if c.env.Telemetry.WatchSpans() {
			hook.NoteWatchSpan(w, c.env.Telemetry.SetIn(c.op.Context()))
		}
	}
	c.op.Send(next)
}

// write sends the write r. next handles the answer, as in send. A fenced client sends r behind the checks of its fence,
// and sends it again after a lost answer only if it is repeatable.
func (c *call) write(r jute.Request, repeatable bool, next func()) {
	f := c.env.fence
	if f == nil || exec.IsUnfenced(c.op.Context()) {
		c.send(r, next)
		return
	}
	if err := f.ended(); err != nil {
		c.op.Finish(err)
		return
	}
	if !c.prepare(f.around(r)) {
		return
	}
	c.op.SendWrite(repeatable, func() {
		c.takeOut(f, r)
		if next == nil {
			c.op.Protocol.(exec.Replier).Replied()
			return
		}
		next()
	})
}

// prepare sets r as the request. It returns false if r is too large, which ends the operation.
func (c *call) prepare(r jute.Request) bool {
	if n := size(&r); n > c.env.maxRequest {
		c.op.Finish(fmt.Errorf("%w: %d bytes, the limit is %d", ErrRequestTooLarge, n, c.env.maxRequest))
		return false
	}
	c.op.Prepare(r)
	return true
}

// size returns the approximate size of r in bytes.
func size(r *jute.Request) int {
	n := len(r.Path) + len(r.Data) + 32
	for i := range r.ACL {
		n += 12 + len(r.ACL[i].Scheme) + len(r.ACL[i].ID)
	}
	for i := range r.Ops {
		n += size(&r.Ops[i])
	}
	return n
}

// watched records w, which the server has set, for a watcher-removing client.
func (c *call) watched(w *callbacks.Watcher, persistent bool) {
	if w != nil && c.env.watchers != nil {
		c.env.watchers.add(c.env, w, c.given, c.op.Absolute(), persistent)
	}
}
