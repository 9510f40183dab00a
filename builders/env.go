package builders

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/internal/wire"
	"github.com/gocurator/curator/zkpath"
)

// Env is what builders need of the client that they come from. Package framework makes it; nobody else needs it.
type Env struct {
	// Err is what every operation fails with: the client is a view of a namespace that is invalid, or refuses everything.
	Err       error
	Executor  *exec.Executor
	Namespace *Namespace
	// DefaultData returns what is written for data nil.
	DefaultData func() []byte
	ACL         ACLProvider
	Compression CompressionProvider
	// CompressAll compresses and decompresses unless a builder says otherwise.
	CompressAll bool
	// MaxBuffer is the size of the largest request that the server reads.
	MaxBuffer int
	// NoContainers makes persistent parents where containers are asked for.
	NoContainers bool
	// Dispatch runs a watcher on the dispatcher.
	Dispatch func(run func(ctx context.Context))
	// Deliver hands the result of a background operation to its callback, or to the listeners of the client if there
	// is none. It runs on the dispatcher.
	Deliver func(ctx context.Context, cb callbacks.BackgroundCallback, ev callbacks.Event)
	// Unhandled is told of failures of background operations that were given up.
	Unhandled func(ctx context.Context, message string, err error)
	// DefaultWatcher is that of the steps called Watched.
	DefaultWatcher *callbacks.Watcher
	// Telemetry is told of watches; the executor tells it of operations.
	Telemetry *telemetry.Telemetry
	// Place is what telemetry calls the namespace: behind the chroot, "" without one.
	Place string
	// Root is the Env of the client without a namespace, which lives as long as the client.
	Root *Env
	// Fence is what the writes depend on, nil if they depend on nothing.
	Fence *Fence
	// Watchers remembers the watchers that are set, if the client is a watcher-removing view.
	Watchers *WatcherSet
}

// Namespace is the part of the tree that a client works in.
type Namespace struct {
	name    string
	prefix  string // "" or "/" and the name
	mu      sync.Mutex
	ensured atomic.Bool // its nodes are there or on their way; changed under mu
	acls    atomic.Pointer[acls]
}

// NewNamespace returns the namespace of that name; the empty one is the whole tree.
func NewNamespace(name string) *Namespace {
	n := &Namespace{name: name}
	if name != "" {
		n.prefix = "/" + name
	}
	return n
}

// Name returns the name, without a slash in front.
func (n *Namespace) Name() string { return n.name }

// full returns the path with its namespace.
func (n *Namespace) full(path string) string {
	switch {
	case n.prefix == "":
		return path
	case path == "/":
		return n.prefix
	}
	return n.prefix + path
}

// paths returns the paths of its nodes, from the top down.
func (n *Namespace) paths() []string {
	var paths []string
	for i := 1; i <= len(n.prefix); i++ {
		if i == len(n.prefix) || n.prefix[i] == '/' {
			paths = append(paths, n.prefix[:i])
		}
	}
	return paths
}

// strip is the inverse of full.
func (n *Namespace) strip(path string) string { return zkpath.StripNamespace(n.name, path) }

// ensureNamespace sends, ahead of the first operation in it, creates of the nodes of the namespace, without waiting:
// the server executes them in order. What fails is left for the operations themselves to notice. Operations that begin
// at the same time wait until the creates are on their way, else they would be ahead of them. The error is that of the
// ACL provider.
func (e *Env) ensureNamespace() error {
	n := e.Namespace
	if n.prefix == "" || n.ensured.Load() || e.Fence != nil && e.Fence.ended() != nil {
		return nil
	}
	paths := n.paths()
	answers, err := e.resolve(nil, paths...) // before the lock: it is the program's code
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ensured.Load() {
		return nil
	}
	n.acls.Store(&answers)
	for _, path := range paths {
		op := &ensureOp{env: e, request: e.parentRequest(path, true, e.aclOf(path, nil, answers))}
		op.Protocol, op.Internal = op, true
		if e.Executor.Go(exec.Root, &op.Operation) != nil {
			return nil
		}
	}
	n.ensured.Store(true)
	return nil
}

// ensureOp creates a node of a namespace.
type ensureOp struct {
	exec.Operation
	env     *Env
	request jute.Request
}

func (o *ensureOp) Begin() {
	if f := o.env.Fence; f != nil {
		o.Request.Request = f.around(o.request)
	} else {
		o.Request.Request = o.request
	}
	o.Send(func() { o.Finish(o.Request.Err) })
}

func (o *ensureOp) Run() {
	err := o.Result()
	refused := o.env.Fence != nil && err != zk.ErrNodeExists
	if err != nil && (refused || exec.IsIndefinite(err) || err == jute.ErrUnimplemented) {
		n := o.env.Namespace
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ensured.Store(false)
	}
}

// parentRequest is the create of a node that others are put under.
func (e *Env) parentRequest(path string, container bool, acl []zk.ACL) jute.Request {
	r := jute.Request{Op: jute.OpCreate2, Path: path, Data: []byte{}, ACL: acl}
	if container && !e.NoContainers {
		r.Op, r.Flags = jute.OpCreateContainer, int32(Container)
	}
	return r
}

// data returns what is to be written for the data given: nil stands for the default.
func (e *Env) data(path string, data []byte, compress option) ([]byte, error) {
	if data == nil {
		data = e.DefaultData()
	}
	if data == nil {
		data = []byte{}
	}
	if !compress.or(e.CompressAll) {
		return data, nil
	}
	var packed []byte
	var err error
	panicked := guarded("compression", e.Compression, func() { packed, err = e.Compression.Compress(path, data) })
	if panicked != nil {
		return nil, panicked
	}
	return packed, err
}

// unpacked is the inverse of data. Data that does not decompress is returned as it is, with the error.
func (e *Env) unpacked(path string, data []byte, decompress option) ([]byte, error) {
	if !decompress.or(e.CompressAll) {
		return data, nil
	}
	var plain []byte
	var err error
	panicked := guarded("compression", e.Compression, func() { plain, err = e.Compression.Decompress(path, data) })
	switch {
	case panicked != nil:
		return data, panicked
	case err != nil:
		return data, err
	}
	return plain, nil
}

// bind returns w as the registry of the connection knows it; absolute says that its path is that of the server.
func (e *Env) bind(w *callbacks.Watcher, absolute bool) wire.Watcher {
	return boundWatcher{setWatcher{e.Namespace.name, w, absolute}, e.Root, e.Watchers}
}

// boundWatcher is a watcher as set through one client. It is comparable: the same watcher set through views of the same
// namespace is one.
type boundWatcher struct {
	setWatcher
	root     *Env
	watchers *WatcherSet
}

// Notify runs on the goroutine that reads the connection.
func (b boundWatcher) Notify(ev zk.Event) {
	if ev.Type != zk.EventSession && !b.absolute {
		ev.Path = zkpath.StripNamespace(b.namespace, ev.Path)
	}
	if b.watchers != nil {
		b.watchers.notified(b.setWatcher, ev)
	}
	b.root.Telemetry.WatchEvent(ev)
	dispatch := b.root.Dispatch
	if b.root.Telemetry.WatchSpans() {
		dispatch = func(run func(context.Context)) {
			b.root.Dispatch(func(ctx context.Context) { b.root.Telemetry.Watched(ctx, ev, hook.WatchSpan(b.w), run) })
		}
	}
	hook.Deliver(b.w, ev, dispatch)
}

// option is a switch that may be left to the client.
type option int8

const (
	unset option = iota
	on
	off
)

func (o option) or(def bool) bool {
	if o == unset {
		return def
	}
	return o == on
}

// clone keeps builders from sharing a slice with their caller.
func clone[E any](s []E) []E { return slices.Clone(s) }

func childPath(parent, child string) string {
	if strings.HasSuffix(parent, "/") {
		return parent + child
	}
	return parent + "/" + child
}
