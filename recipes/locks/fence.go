package locks

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// Fence returns a check that the lock is held, for a transaction of any view of the client that the lock was made with: put in
// front of other operations, they take effect only while the node of the lock exists, or those of a multi lock all exist.
// Else the transaction fails with [ErrLockLost]. The server decides, so a process that was stopped for long, and does not
// know yet that the lock is lost, is refused.
func (h *Hold) Fence() builders.TransactionOperation { return h.fence.Operation() }

// Client returns a view of the client that the lock was made with whose writes take effect only while the lock is held: see
// [framework.Client.Fenced]. They fail with [ErrLockLost] when the server finds it lost, and without a request when the hold is
// known to have ended, with [ErrLockLost] or [ErrReleased]. One whose answer was lost, and that could take effect twice, fails with
// [framework.ErrUncertain].
func (h *Hold) Client() *framework.Client { return h.fence.Client(h.ctx) }

// Transaction executes ops as one, while the lock is held, as [Hold.Client] does.
func (h *Hold) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	return h.Client().Transaction().ForOperations(ctx, ops...)
}

// Fence is as [Hold.Fence], for the node of the lease.
func (l *Lease) Fence() builders.TransactionOperation { return l.hold.Fence() }

// Client is as [Hold.Client], for the node of the lease.
func (l *Lease) Client() *framework.Client { return l.hold.Client() }

// Transaction is as [Hold.Transaction], for the node of the lease.
func (l *Lease) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	return l.hold.Transaction(ctx, ops...)
}
