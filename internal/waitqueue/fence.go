package waitqueue

import (
	"context"
	"sync"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/zkpath"
)

// Fence makes writes depend on the node of a contender. Do not copy it after its first use.
type Fence struct {
	client *framework.Client
	path   string
	lost   error
	more   []*Fence // the fences of further nodes

	once sync.Once
	view *framework.Client
}

// NewFence returns the fence of a node. When the node is gone, writes fail with lost.
func NewFence(client *framework.Client, path string, lost error) Fence {
	return Fence{client: client, path: path, lost: lost}
}

// With returns a fence of the nodes of f and of more.
func (f *Fence) With(more ...*Fence) Fence {
	return Fence{client: f.client, path: f.path, lost: f.lost, more: append(more, f.more...)}
}

// operations returns an operation for each of the nodes. The nodes may belong to clients with different chroots.
func (f *Fence) operations() []builders.TransactionOperation {
	node := zkpath.Join(f.client.Namespace(), f.path)
	ops := []builders.TransactionOperation{f.client.UsingNamespace("").TransactionOp().Fence(f.lost, node)}
	for _, other := range f.more {
		ops = append(ops, other.operations()...)
	}
	return ops
}

// Operation returns an operation that checks the nodes.
func (f *Fence) Operation() builders.TransactionOperation {
	return hook.JoinFences(f.operations()).(builders.TransactionOperation)
}

// Client returns a view of the client whose writes check the nodes. After the end of ctx they fail with its cause,
// without a request.
func (f *Fence) Client(ctx context.Context) *framework.Client {
	f.once.Do(func() {
		view := hook.FencedBy(f.client.UsingNamespace(""), ctx, f.Operation()).(*framework.Client)
		f.view = view.UsingNamespace(f.client.Namespace())
	})
	return f.view
}
