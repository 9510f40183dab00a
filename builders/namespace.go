package builders

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/exec"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/zkpath"
)

// namespace is the part of the tree in which a client works.
type namespace struct {
	name    string
	prefix  string // "" or "/" and the name
	mu      sync.Mutex
	ensured atomic.Bool // its nodes exist or are on their way; changed under mu
	acls    atomic.Pointer[acls]
}

// newNamespace returns the namespace of that name; the empty one is the whole tree.
func newNamespace(name string) *namespace {
	n := &namespace{name: name}
	if name != "" {
		n.prefix = "/" + name
	}
	return n
}

// full returns the path with its namespace.
func (n *namespace) full(path string) string {
	switch {
	case n.prefix == "":
		return path
	case path == "/":
		return n.prefix
	}
	return n.prefix + path
}

// paths returns the paths of its nodes, from the top down.
func (n *namespace) paths() []string {
	var paths []string
	for i := 1; i <= len(n.prefix); i++ {
		if i == len(n.prefix) || n.prefix[i] == '/' {
			paths = append(paths, n.prefix[:i])
		}
	}
	return paths
}

// strip is the inverse of full.
func (n *namespace) strip(path string) string { return zkpath.StripNamespace(n.name, path) }

// ensureNamespace sends creates of the nodes of the namespace ahead of its first operation, and does not wait: the
// server executes requests in order. Operations fail if these creates fail. Operations that begin at the same time wait
// until the creates are on their way. The returned error is that of the ACL provider.
func (e *environment) ensureNamespace() error {
	n := e.namespace
	if n.prefix == "" || n.ensured.Load() || e.fence != nil && e.fence.ended() != nil {
		return nil
	}
	paths := n.paths()
	answers, err := e.resolve(nil, paths...) // before the lock: this runs the program's code
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
		o := &ensureOp{env: e, request: e.parentRequest(path, true, e.aclOf(path, nil, answers))}
		o.op.Protocol, o.op.Internal = o, true
		if e.Executor.Go(exec.Root, &o.op) != nil {
			return nil
		}
	}
	n.ensured.Store(true)
	return nil
}

// EnsureNamespace is the first part of every operation: see hook.EnsureNamespace.
func (e *environment) EnsureNamespace() error {
	if e.err != nil {
		return nil // the operation returns it
	}
	return e.ensureNamespace()
}

// ensureOp creates a node of a namespace.
type ensureOp struct {
	op      exec.Operation
	env     *environment
	request jute.Request
}

func (o *ensureOp) Begin() {
	if f := o.env.fence; f != nil {
		o.op.Prepare(f.around(o.request))
	} else {
		o.op.Prepare(o.request)
	}
	o.op.Send(func() { o.op.Finish(o.op.Err()) })
}

func (o *ensureOp) Deliver() {
	err := o.op.Result()
	refused := o.env.fence != nil && err != zk.ErrNodeExists
	noParent := err == zk.ErrNoNode // the chroot may be created later
	open := noParent || exec.IsIndefinite(err) || errors.Is(err, jute.ErrUnimplemented)
	if err != nil && (refused || open) {
		n := o.env.namespace
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ensured.Store(false)
	}
}
