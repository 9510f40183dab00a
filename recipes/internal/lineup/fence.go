package lineup

import (
	"context"
	"sync"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// Fence makes writes depend on the node of a contender. It must not be copied after its first use.
type Fence struct {
	client Client
	path   string
	lost   error
	more   []*Fence // for further nodes

	once sync.Once
	view *framework.Client
}

// NewFence returns the fence of a node; writes fail with lost when it is gone.
func NewFence(client Client, path string, lost error) Fence {
	return Fence{client: client, path: path, lost: lost}
}

// With returns a fence of the nodes of f and more.
func (f *Fence) With(more ...*Fence) Fence {
	return Fence{client: f.client, path: f.path, lost: f.lost, more: append(more, f.more...)}
}

// nodes returns the paths of all nodes, with their namespaces.
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

// Client returns a view of the client whose writes check the nodes. When tenure has ended, they fail at once with its
// cause.
func (f *Fence) Client(tenure context.Context) *framework.Client {
	f.once.Do(func() {
		f.view = f.client.UsingNamespace("").Fenced(tenure, f.lost, f.nodes()...).UsingNamespace(f.client.Namespace())
	})
	return f.view
}
