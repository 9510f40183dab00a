package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/zkpath"
)

// fenceName is the name prefix of fence nodes, below the lock path. No item has such a name.
const fenceName = "fence-"

// Fence makes writes depend on the lock of an item: the server refuses them when the lock is lost with its session. All
// methods are safe for concurrent use, and return [ErrLockLost] when the item is no longer ours or was settled.
//
// The lock of an item has the same name for every consumer, so that its existence proves nothing. The first use of a
// fence creates an ephemeral node with a unique name beside the lock, in the session of the lock. The node is deleted
// before the item is settled. There is no Java counterpart.
type Fence struct {
	paths *node.Paths
	m     *claim.Message

	mu      sync.Mutex
	holding context.Context //nolint:containedctx // of the writes: it ends with the lock and with the item
	end     context.CancelCauseFunc
	node    string // "" before the first use
	fence   waitqueue.Fence
}

func newFence(p *node.Paths, m *claim.Message, work context.Context) *Fence { //nolint:revive // of the work
	f := &Fence{paths: p, m: m}
	f.holding, f.end = context.WithCancelCause(work)
	return f
}

type fenceKey struct{}

// FenceOf returns the fence of the item that a context belongs to: the context of a [Consumer] or of [Item.Context]. It
// returns nil for another context, and for an item without a lock. The methods of a nil Fence fail with [ErrLockLost].
func FenceOf(ctx context.Context) *Fence {
	f, _ := ctx.Value(fenceKey{}).(*Fence)
	return f
}

// Operation returns an operation for transactions of any client. It fails, and the transaction with it, when the lock
// of the item is lost. ctx bounds the creation of the node on first use.
func (f *Fence) Operation(ctx context.Context) (op builders.TransactionOperation, err error) {
	if err := f.prepare(ctx); err != nil {
		return op, err
	}
	return f.fence.Operation(), nil
}

// Client returns a view of the queue's client with writes that the fence guards. After the item is settled they fail
// without a request. ctx bounds the creation of the node on first use.
func (f *Fence) Client(ctx context.Context) (*framework.Client, error) {
	if err := f.prepare(ctx); err != nil {
		return nil, err
	}
	return f.fence.Client(f.holding), nil
}

// Transaction commits operations behind a check of the lock: all of them, or none. ctx bounds the wait. If the answer
// is lost, the error wraps [builders.ErrUncertain].
func (f *Fence) Transaction(
	ctx context.Context, ops ...builders.TransactionOperation,
) ([]callbacks.OperationResult, error) {
	client, err := f.Client(ctx)
	if err != nil {
		return nil, err
	}
	return client.Transaction().ForOperations(ctx, ops...)
}

// prepare creates the node on first use.
func (f *Fence) prepare(ctx context.Context) error {
	if f == nil {
		return errtext.Wrap(ErrLockLost, "queue", "fence")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.node != "" {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(f.holding, func() { cancel(ErrLockLost) })
	defer stop()
	node := zkpath.Join(f.paths.Locks, fenceName+zkpath.NewProtectionID())
	err := waitqueue.RetryPassing(ctx, f.paths.Client, func() error { return f.create(ctx, node) })
	if err == nil {
		f.node = node
		f.fence = waitqueue.NewFence(f.paths.Client, node, ErrLockLost)
		return nil
	}
	f.delete(node) // an answer may have been lost
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errtext.Wrap(err, "queue", "fence of %s", f.paths.Item(f.m.Name))
}

// create creates the node after a read that finds the lock of the claim, on one connection. So the node belongs to the
// session of the lock, and is deleted with it.
func (f *Fence) create(ctx context.Context, node string) error {
	if f.holding.Err() != nil {
		return ErrLockLost
	}
	flight := builders.Pipelined(ctx)
	held, _, err := claim.ReadLock(flight, f.paths, f.m.Name)
	if err != nil {
		return err
	}
	if held != f.m.Lock.ID {
		return ErrLockLost
	}
	var stat zk.Stat
	create := f.paths.Client.Create().WithMode(builders.Ephemeral).StoringStatIn(&stat)
	_, err = create.Submit(flight, node, nil).Wait(ctx)
	if errors.Is(err, zk.ErrNodeExists) { // the answer to an earlier create was lost
		var there *zk.Stat
		if there, err = f.paths.Client.CheckExists().ForPath(flight, node); there != nil {
			stat = *there
		}
	}
	switch {
	case err != nil:
		return err
	case stat.EphemeralOwner != f.m.Lock.Session.ID(): // a new session has seen the lock of the old one
		return ErrLockLost
	}
	return nil
}

// close ends the writes before the item is settled.
func (f *Fence) close() {
	if f == nil {
		return
	}
	f.end(ErrLockLost)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.node != "" {
		f.delete(f.node)
	}
}

// delete deletes the node in the background until it is gone. No other node has its name.
func (f *Fence) delete(node string) {
	ctx := context.WithoutCancel(f.holding)
	_ = f.paths.Client.Delete().Guaranteed().Quietly().InBackground(waitqueue.Ignore).ForPath(ctx, node)
}
