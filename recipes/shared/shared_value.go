package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/listeners"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/zkpath"
)

// SharedValue is the data of a node, which all processes share, with a copy in memory. While the client is connected,
// the copy follows the node, also after the node was deleted and created again. Without a connection, and while the
// node does not exist or cannot be read, the copy stays as it is. It takes no goroutine while nothing changes. All
// methods are safe for concurrent use. In Java: SharedValue.
type SharedValue struct { //nolint:revive // the name is Java's, and Value is the typed one
	node
	seed      []byte
	listeners listeners.Set[VersionedValue[[]byte]]
	states    listeners.Set[framework.ConnectionState]
	onChange  func(now VersionedValue[[]byte]) // called with mu held; nil for a value that is not a count
	calls     waitqueue.Serial                 // of the listeners
	life      context.Context                  // of the listeners; ends with Close
	end       context.CancelCauseFunc

	mu          sync.Mutex
	phase       phase
	cache       *cache.CuratorCache // of the value that is started
	removeState func()
	current     VersionedValue[[]byte]
	written     int64         // the zxid of the last answer to an own request, until the cache has it; 0 if it has
	changed     chan struct{} // closed when current changes; nil if nobody waits
}

// phase is how far a value is.
type phase int

const (
	latent phase = iota
	starting
	started
	closed
)

// NewSharedValue returns the value of the node at path. It does no I/O. seed is the value of the node if Start creates
// it, and the value in memory until then. If path is invalid, Start returns an error. In Java: new SharedValue.
func NewSharedValue(client *framework.Client, path string, seed []byte, opts ...Option) *SharedValue {
	return newSharedValue(client, "shared_value", path, seed, opts)
}

func newSharedValue(client *framework.Client, recipe, path string, seed []byte, opts []Option) *SharedValue {
	v := &SharedValue{seed: ownedBytes(seed)}
	v.init(client, recipe, path, opts)
	v.current = VersionedValue[[]byte]{Value: v.seed, Version: -1, Zxid: -1}
	root := context.Background() //nolint:forbidigo // Close ends it
	v.life, v.end = context.WithCancelCause(hook.Telemetry(client).WithoutSpans(root))
	return v
}

// ownedBytes returns a copy of data that is not nil: nil would be the default data of the client.
func ownedBytes(data []byte) []byte { return append([]byte{}, data...) }

// Start creates the node with the seed if it does not exist, its parents as containers, and reads it. ctx bounds the
// wait. After an error Start can be called again; the node may exist by then. The errors are those of the create and
// the read, [ErrStarted] and [ErrClosed]. In Java: start, which cannot be called again.
func (v *SharedValue) Start(ctx context.Context) error {
	return v.wrap(v.start(ctx, func([]byte) error { return nil }), "start")
}

// start is Start. check refuses data with which the value cannot start.
func (v *SharedValue) start(ctx context.Context, check func(data []byte) error) error {
	if err := zkpath.Validate(v.path, false); err != nil {
		return err
	}
	if err := v.advance(latent, starting, func() {}); err != nil {
		return err
	}
	ctx, end := v.untilClosed(ctx)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(v.life, func() { cancel(ErrClosed) })()
	v.obs.Started(ctx)
	c := cache.NewCuratorCache(v.client, v.path, cache.WithSingleNode(), cache.WithName(v.name))
	err := v.load(ctx, c)
	if err == nil {
		err = check(v.Value())
	}
	if err == nil {
		err = v.advance(starting, started, func() {
			v.cache, v.removeState = c, v.client.AddConnectionStateListener(v.stateChanged)
		})
	} else if v.advance(starting, latent, func() {}) != nil {
		err = ErrClosed
	} else if context.Cause(ctx) == framework.ErrClosed { //nolint:errorlint // it is the cause itself
		err = framework.ErrClosed
	}
	if err != nil {
		_ = c.Close()
	}
	return err
}

// advance changes the phase, and calls fn with mu held, or returns why that is not possible.
func (v *SharedValue) advance(from, to phase, fn func()) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.phase == closed:
		return ErrClosed
	case v.phase != from:
		return ErrStarted
	}
	v.phase = to
	fn()
	return nil
}

// load waits until the copy is that of c, which it starts, and creates the node if it does not exist. A process that
// may only read the node can start too.
func (v *SharedValue) load(ctx context.Context, c *cache.CuratorCache) error {
	loaded := make(chan struct{})
	var once sync.Once
	c.AddListener(cache.ForCreatesAndChanges(func(_ context.Context, _, n *cache.ChildData) {
		v.follow(n)
		once.Do(func() { close(loaded) })
	}))
	if err := c.Start(); err != nil {
		return err
	}
	err := c.Ready(ctx)
	for err == nil && c.Err(v.path) == nil {
		if _, ok := c.Get(v.path); ok {
			break
		}
		if _, err := v.create(ctx, v.seed); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		err = c.Rebuild(ctx) // which may find that the node was deleted in between
	}
	if err == nil {
		err = c.Err(v.path)
	}
	if err != nil {
		return err
	}
	select {
	case <-loaded:
		return nil
	case <-ctx.Done():
		return hook.EndOf(ctx, v.client)
	}
}

// follow makes a state of the cache the copy. The cache calls it with one state after the other. A state that is older
// than an answer which note has got is on its way to be replaced.
func (v *SharedValue) follow(n *cache.ChildData) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n.Stat.Mzxid < v.written {
		return
	}
	v.written = 0
	v.replace(versioned(n.Data, &n.Stat))
}

// note makes an answer of the server to this value's own request the copy, if it is newer.
func (v *SharedValue) note(r revision) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.stat.Mzxid > v.current.Zxid {
		v.written = r.stat.Mzxid
		v.replace(versioned(r.data, &r.stat))
	}
}

// replace sets the copy and calls the listeners, with mu held.
func (v *SharedValue) replace(now VersionedValue[[]byte]) {
	if v.current.Zxid == now.Zxid {
		return
	}
	v.current = now
	if v.onChange != nil {
		v.onChange(now)
	}
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
	if v.phase == started {
		v.calls.Do(func() { v.listeners.Notify(v.life, with(now, bytes.Clone(now.Value)), v.call(v.life)) })
	}
}

// call returns what calls a listener: not after Close, and with a report of its panic.
func (v *SharedValue) call(ctx context.Context) func(fn func()) {
	guard := waitqueue.Guard(context.WithoutCancel(ctx), v.client, "SharedValue "+v.path)
	return func(fn func()) {
		if v.checkRunning() == nil {
			guard(fn)
		}
	}
}

func (v *SharedValue) stateChanged(ctx context.Context, state framework.ConnectionState) {
	v.states.Notify(listeners.Until(v.life, ctx), state, v.call(ctx))
}

// checkRunning returns nil between Start and Close, else the reason.
func (v *SharedValue) checkRunning() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch v.phase {
	case started:
		return nil
	case closed:
		return ErrClosed
	default:
		return ErrNotStarted
	}
}

// Value returns a copy of the value: the seed before Start. In Java: getValue.
func (v *SharedValue) Value() []byte { return v.VersionedValue().Value }

// VersionedValue returns a copy of the value with its version, for [SharedValue.TrySetValue]. In Java:
// getVersionedValue.
func (v *SharedValue) VersionedValue() VersionedValue[[]byte] {
	v.mu.Lock()
	defer v.mu.Unlock()
	return with(v.current, bytes.Clone(v.current.Value))
}

// SetValue sets the value, whatever it is. Afterwards Value returns this value or a later one. ctx bounds the wait. If
// the node was deleted, the error is zk.ErrNoNode; with [ErrUncertain] the value may be set. In Java: setValue.
func (v *SharedValue) SetValue(ctx context.Context, value []byte) error {
	err := v.checkRunning()
	if err == nil {
		var now revision
		if now, err = v.set(ctx, ownedBytes(value)); err == nil {
			v.note(now)
		}
	}
	return v.wrap(err, "set")
}

// TrySetValue sets the value if it still is previous, which [SharedValue.VersionedValue] or a listener has returned. It
// returns false if another client has set the value since. Afterwards Value returns the new value or a later one, also
// if false is returned: if the new value cannot be read, nothing is set and the error is that of the read. ctx bounds
// the wait. If the answer was lost and nobody can know whether the value was set, the error is [ErrUncertain]. If the
// node was deleted, it is zk.ErrNoNode, and [ErrIllegalVersion] if previous has the version -1. A previous that the
// program has made of a version alone is framework.ErrBadArguments. In Java: trySetValue, which returns false if the
// answer was lost and the value was set.
func (v *SharedValue) TrySetValue(
	ctx context.Context, previous VersionedValue[[]byte], value []byte,
) (bool, error) {
	set, err := v.trySet(ctx, previous.stat(), ownedBytes(value))
	return set, v.wrap(err, "try to set")
}

func (v *SharedValue) trySet(ctx context.Context, previous zk.Stat, data []byte) (set bool, err error) {
	if err := v.checkRunning(); err != nil {
		return false, err
	}
	if previous.Version == -1 {
		return false, ErrIllegalVersion
	}
	v.mu.Lock()
	isOld := previous.Mzxid < v.current.Zxid
	v.mu.Unlock()
	switch {
	case isOld && previous.Mzxid == 0: // a node that was read has one, except for the root
		return false, fmt.Errorf("%w: the previous value has no Zxid: it was never read", framework.ErrBadArguments)
	case isOld:
		v.obs.Conflict(ctx)
		return false, nil
	}
	now, set, err := v.compareAndSet(ctx, previous, data)
	if now.stat.Czxid != 0 {
		v.note(now)
	}
	return set, err
}

// AddListener adds a listener to the changes of the value; remove removes it. It gets each value that the client sees
// after Start, also those of this process; of several changes in short time it may get the last one only. The listeners
// are called one at a time, in the order of the values, on a goroutine of the value. The context of a listener ends
// with Close. In Java: getListenable, whose listeners are also called if nothing has changed.
func (v *SharedValue) AddListener(fn callbacks.Listener[VersionedValue[[]byte]]) (remove func()) {
	return v.listeners.Add(fn)
}

// AddConnectionStateListener adds a listener to the states of the connection between Start and Close; remove removes
// it. It is called as those of the client are. In Java: SharedValueListener.stateChanged.
func (v *SharedValue) AddConnectionStateListener(fn callbacks.Listener[framework.ConnectionState]) (remove func()) {
	return v.states.Add(fn)
}

// Err returns the error of the last read of the node, or nil if it succeeded. Until a further try succeeds, the copy
// may be old.
func (v *SharedValue) Err() error {
	v.mu.Lock()
	c := v.cache
	v.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Err(v.path)
}

// Changed returns a channel that is closed when the value changes after the call.
func (v *SharedValue) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.changed
}

// Close stops following the node, which stays. It always returns nil. No listener call begins after it returns. It does
// not wait for a call that is under way: a listener may call Close. A Start under way returns [ErrClosed]. In Java:
// close.
func (v *SharedValue) Close() error {
	v.mu.Lock()
	before := v.phase
	v.phase = closed
	c, removeState := v.cache, v.removeState
	v.mu.Unlock()
	v.end(ErrClosed) // of a Start too, which looks at the phase then
	if before == started {
		removeState()
		_ = c.Close()
	}
	return nil
}
