package locks

import (
	"context"

	"github.com/gocurator/curator/zkpath"
)

// Lease is one of the leases of a semaphore, from Acquire to Return. It is safe for concurrent use. In Java: Lease.
type Lease struct {
	hold   *Hold
	client Client
}

// Return gives the lease back and waits for that; ctx bounds the waiting, never the giving back, which goes on in the
// background until it is done. A second call does nothing. In Java: close, returnLease.
func (l *Lease) Return(ctx context.Context) error { return l.hold.Release(ctx) }

// Context returns a context for the work that needs the lease. It has the values of the context of Acquire, not its
// end, and ends when the lease is lost with its session, with the cause [ErrLockLost], or returned, with [ErrReleased].
func (l *Lease) Context() context.Context { return l.hold.Context() }

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.hold.Path() }

// NodeName returns the name of the lease's node.
func (l *Lease) NodeName() string { return zkpath.Node(l.hold.Path()) }

// Data returns the data of the lease's node: that of [WithLeaseData], or the default data of the client.
func (l *Lease) Data(ctx context.Context) ([]byte, error) {
	return l.client.GetData().ForPath(ctx, l.hold.Path())
}
