package builders

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/zkpath"
)

// CheckExists builds an exists; it is a value like [Create]. In Java: ExistsBuilder.
type CheckExists struct {
	env        *environment
	acl        []zk.ACL
	parents    bool
	containers bool
	watcher    *callbacks.Watcher
}

// CreatingParentsIfNeeded creates missing parents of the node as persistent nodes without data.
func (e CheckExists) CreatingParentsIfNeeded() CheckExists {
	e.parents, e.containers = true, false
	return e
}

// CreatingParentContainersIfNeeded creates missing parents of the node as containers.
func (e CheckExists) CreatingParentContainersIfNeeded() CheckExists {
	e.parents, e.containers = true, true
	return e
}

// WithACL sets the ACL of the parents that are created.
func (e CheckExists) WithACL(acl ...zk.ACL) CheckExists { e.acl = clone(acl); return e }

// UsingWatcher sets a watch: for the data and the deletion of a node that exists, for the creation of one that does
// not.
func (e CheckExists) UsingWatcher(w *callbacks.Watcher) CheckExists { e.watcher = w; return e }

// Watched sets a watch whose event goes to the listeners of the client.
func (e CheckExists) Watched() CheckExists { return e.UsingWatcher(e.env.DefaultWatcher) }

// InBackground makes ForPath asynchronous: it returns once the operation is queued, and cb receives the result, or the
// client's listeners if cb is nil. The Stat of the event is nil if the node does not exist.
func (e CheckExists) InBackground(cb callbacks.BackgroundCallback) Background {
	return Background{background{cb: cb}, e.start}
}

// ForPath returns the Stat of the node; nil, without an error, if it does not exist. It fails with zk.ErrNoNode if the
// parents are to be created and other clients remove them again and again, and with [ErrNoChroot] if they cannot be
// because the chroot does not exist. The root has no parents: such an exists only looks for the chroot.
func (e CheckExists) ForPath(ctx context.Context, path string) (*zk.Stat, error) {
	o := recycled[existsOp](&existsOps)
	o.b = e
	if err := o.prepare(path); err != nil {
		return nil, err
	}
	return perform(ctx, &o.call, o)
}

// Submit submits the exists and does not wait: see [Create.Submit].
func (e CheckExists) Submit(ctx context.Context, path string) Future[*zk.Stat] {
	o := &existsOp{b: e}
	if err := o.prepare(path); err != nil {
		return Future[*zk.Stat]{err: err}
	}
	return submit(ctx, &o.call, o, o.result)
}

func (e CheckExists) start(ctx context.Context, path string, b background) error {
	o := recycled[existsOp](&existsOps)
	o.b = e
	if err := o.prepare(path); err != nil {
		return err
	}
	return o.background(ctx, o, b)
}

// existsOp is the protocol of an exists.
type existsOp struct {
	call
	b     CheckExists
	acls  acls
	found bool

	rounds int // number of repairs after changes by others
}

var existsOps sync.Pool

// Recycle returns its memory to the pool.
func (o *existsOp) Recycle() { recycle(&existsOps, o) }

func (o *existsOp) prepare(path string) error {
	if err := o.init(o.b.env, callbacks.Exists, "exists", path, false); err != nil {
		return err
	}
	if !o.b.parents || o.full == "/" || len(o.b.acl) > 0 || o.env.err != nil {
		return nil
	}
	var err error
	o.acls, err = o.env.resolveTree(nil, zkpath.Parent(o.full))
	return o.wrap(err)
}

// Begin sends the request, after the creates of the parents.
func (o *existsOp) Begin() {
	if !o.b.parents || o.full == "/" { // a missing chroot is not created
		o.exists()
		return
	}
	o.makeParents(zkpath.Parent(o.full), o.b.containers, o.b.acl, o.acls, func(err error) {
		switch {
		case err == nil:
			o.exists()
		case err == zk.ErrNoNode && o.rounds < maxRounds: // another client removes them
			o.rounds++
			o.Begin()
		default:
			o.op.Finish(err)
		}
	})
}

func (o *existsOp) exists() {
	o.sendWatching(jute.Request{Op: jute.OpExists, Path: o.full}, o.b.watcher, nil)
}

// Replied handles the answer to the exists.
func (o *existsOp) Replied() {
	err := o.op.Err()
	o.found = err == nil
	if err == zk.ErrNoNode && !(o.b.parents && o.full == "/") {
		err = nil
	}
	if err == nil {
		o.watched(o.b.watcher, false)
	}
	o.op.Finish(err)
}

func (o *existsOp) result() (*zk.Stat, error) {
	if !o.found {
		return nil, nil
	}
	return o.statCopy(), nil
}

// Deliver hands the result to the callback.
func (o *existsOp) Deliver() {
	var ev callbacks.Event
	if o.found {
		ev.Stat = o.statCopy()
	}
	o.deliver(ev)
}
