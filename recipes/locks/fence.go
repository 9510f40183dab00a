package locks

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// Fence returns a transaction operation that checks the lock. A transaction of any client of the same ensemble takes
// effect only while the node of the lock exists; for a multi lock, all nodes. Otherwise it fails with [ErrLockLost].
// The server decides, so it also refuses a process that was stopped and has not noticed the loss.
func (h *Hold) Fence() builders.TransactionOperation { return h.fence.Operation() }

// Client returns a view of the lock's client whose writes take effect only while the lock is held: see
// [framework.Client.Fenced]. A write fails with [ErrLockLost] if the node of the lock is gone. After the end of the
// hold it fails without a request, with [ErrLockLost] or [ErrReleased]. It fails with [framework.ErrUncertain] if its
// reply is lost and a retry could write twice. It fails with both [framework.ErrUncertain] and [ErrLockLost] if it was
// retried and the lock was lost by then. So only an [ErrLockLost] without [framework.ErrUncertain] means that nothing
// was written.
func (h *Hold) Client() *framework.Client { return h.fence.Client(h.ctx) }

// Transaction executes ops as one transaction of [Hold.Client].
func (h *Hold) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	return h.Client().Transaction().ForOperations(ctx, ops...)
}

// Fence returns a transaction operation that checks the lease. See [Hold.Fence].
func (l *Lease) Fence() builders.TransactionOperation { return l.hold.Fence() }

// Client returns a view of the semaphore's client whose writes take effect only while the lease is held. See
// [Hold.Client].
func (l *Lease) Client() *framework.Client { return l.hold.Client() }

// Transaction executes ops as one transaction of [Lease.Client].
func (l *Lease) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	return l.hold.Transaction(ctx, ops...)
}
