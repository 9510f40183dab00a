package locks

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Fence returns an operation that checks that the lock is held. Use it in a transaction of any view of the lock's
// client: the transaction takes effect only while the node of the lock exists, or all nodes of a multi lock do.
// Otherwise it fails with [ErrLockLost]. The server decides, so it also refuses a process that was stopped and does not
// know that the lock is lost. A transaction with the operation of a nil Hold fails with [ErrReleased].
func (h *Hold) Fence() builders.TransactionOperation {
	if h == nil || h.grant == nil {
		return noClient().TransactionOp().Fence(ErrReleased, "/")
	}
	return h.fence.Operation()
}

// Client returns a view of the lock's client whose writes take effect only while the lock is held. See
// [framework.Client.Fenced]. A write fails with [ErrLockLost] if the server finds that the node of the lock is gone. It
// fails without a request, with [ErrLockLost] or [ErrReleased], if the hold is known to have ended. It fails with
// [framework.ErrUncertain] if its answer is lost and it could take effect twice, or, together with ErrLockLost, if it
// was tried again and the lock was lost by then: only an ErrLockLost without it says that nothing was written. The
// client of a nil Hold has no connection: everything fails with ErrReleased, reads too.
func (h *Hold) Client() *framework.Client {
	if h == nil || h.grant == nil {
		return noClient()
	}
	return h.fence.Client(h.ctx)
}

// noClient returns the client of a nil Hold.
var noClient = lineup.RefusingClient(ErrReleased)

// Transaction executes ops as one transaction of [Hold.Client].
func (h *Hold) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	if h == nil || h.grant == nil {
		return nil, errtext.Wrap(ErrReleased, "locks", "transaction")
	}
	return h.Client().Transaction().ForOperations(ctx, ops...)
}

// Fence returns an operation that checks that the lease is held. See [Hold.Fence].
func (l *Lease) Fence() builders.TransactionOperation { return l.held().Fence() }

// Client returns a view of the semaphore's client whose writes take effect only while the lease is held. See
// [Hold.Client].
func (l *Lease) Client() *framework.Client { return l.held().Client() }

// Transaction executes ops as one transaction of [Lease.Client].
func (l *Lease) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	return l.held().Transaction(ctx, ops...)
}
