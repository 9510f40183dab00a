package locks

import (
	"context"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// Lease is one lease of a semaphore, from Acquire to Return. It is safe for concurrent use. A nil Lease is a returned
// one. In Java: Lease.
type Lease struct {
	hold   *Hold
	client Client
}

// Return returns the lease and waits for the answer. ctx bounds the wait, not the return, which goes on in the
// background until it succeeds. A second call does nothing. So does a call on a nil Lease. In Java: close, returnLease.
func (l *Lease) Return(ctx context.Context) error { return l.held().Release(ctx) }

// held returns the hold of the lease, which is nil for a nil Lease.
func (l *Lease) held() *Hold {
	if l == nil {
		return nil
	}
	return l.hold
}

// Context returns the context for the work that needs the lease. It has the values of the context of Acquire, but not
// its end. It ends when the lease is lost, with the cause [ErrLockLost], or returned, with [ErrReleased]: see
// [Hold.Context].
func (l *Lease) Context() context.Context { return l.held().Context() }

// Path returns the path of the lease's node.
func (l *Lease) Path() string { return l.held().Path() }

// NodeName returns the name of the lease's node.
func (l *Lease) NodeName() string { return zkpath.Node(l.held().Path()) }

// Data reads the data of the lease's node: that of [WithLeaseData], or the default data of the client. It fails with
// [ErrReleased] for a nil Lease.
func (l *Lease) Data(ctx context.Context) ([]byte, error) {
	if l.held() == nil {
		return nil, errtext.Wrap(ErrReleased, "locks", "data of a lease")
	}
	return l.client.GetData().ForPath(ctx, l.hold.Path())
}
