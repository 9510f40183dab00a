package locks

import (
	"context"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// Lease is one lease of a semaphore, from Acquire to Return. It is safe for concurrent use. In Java: Lease.
type Lease struct {
	hold   *Hold
	client *framework.Client
}

// Return returns the lease and waits for the answer. ctx bounds the wait, not the return, which goes on in the
// background until it succeeds. A second call does nothing. So does a call on a nil Lease, for a defer in front of the
// check of the error. In Java: close, returnLease.
func (l *Lease) Return(ctx context.Context) error {
	if l == nil {
		return nil
	}
	return l.hold.Release(ctx)
}

// Context returns the context for the work that needs the lease. It has the values of the context of Acquire, but not
// its end. It ends when the lease is lost, with the cause [ErrLockLost], or returned, with [ErrReleased]: see
// [Hold.Context].
func (l *Lease) Context() context.Context { return l.hold.Context() }

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.hold.Path() }

// NodeName returns the name of the lease's node.
func (l *Lease) NodeName() string { return zkpath.Node(l.hold.Path()) }

// Data reads the data of the lease's node: that of [WithLeaseData], or the default data of the client.
func (l *Lease) Data(ctx context.Context) ([]byte, error) {
	return l.client.GetData().ForPath(ctx, l.hold.Path())
}
