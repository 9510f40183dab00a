package waitqueue

import (
	"context"
	"sync"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// Fence makes writes depend on the node of a contender. Do not copy it after its first use.
type Fence struct {
	client Client
	path   string
	lost   error
	more   []*Fence // of further nodes

	once sync.Once
	view *framework.Client
}

// NewFence returns the fence of a node. When the node is gone, writes fail with lost.
func NewFence(client Client, path string, lost error) Fence {
	return Fence{client: client, path: path, lost: lost}
}

// With returns a fence of the nodes of f and of more.
func (f *Fence) With(more ...*Fence) Fence {
	return Fence{client: f.client, path: f.path, lost: f.lost, more: append(more, f.more...)}
}

// nodes returns the full paths of all nodes, namespaces included.
func (f *Fence) nodes() []string {
	nodes := []string{zkpath.Join(f.client.Namespace(), f.path)}
	for _, other := range f.more {
		nodes = append(nodes, other.nodes()...)
	}
	return nodes
}

// Operation returns an operation that checks the nodes.
func (f *Fence) Operation() builders.TransactionOperation {
	return f.client.UsingNamespace("").TransactionOp().Fence(f.lost, f.nodes()...)
}

// Client returns a view of the client whose writes check the nodes. After the end of ctx they fail with its cause,
// without a request.
func (f *Fence) Client(ctx context.Context) *framework.Client {
	f.once.Do(func() {
		f.view = f.client.UsingNamespace("").Fenced(ctx, f.lost, f.nodes()...).UsingNamespace(f.client.Namespace())
	})
	return f.view
}
