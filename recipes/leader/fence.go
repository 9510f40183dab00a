package leader

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// Fence returns a check that leadership lasts, for a transaction of any view of the client that the latch or selector was made
// with: put in front of other operations, they take effect only while the node of the leader exists. Else the transaction
// fails with [ErrLeadershipLost]. The server decides, so a process that was stopped for long, and does not know yet that
// another one leads, is refused.
func (l *Leadership) Fence() builders.TransactionOperation { return l.fence.Operation() }

// Client returns a view of the client that the latch or selector was made with whose writes take effect only while the
// node of the leader exists: see [framework.Client.Fenced]. They fail with [ErrLeadershipLost] when the server finds it gone,
// and without a request when leadership is known to be lost. After InterruptLeadership, and while a selector closes, they still take
// effect, until the function has returned. One whose answer was lost, and that could take effect twice, fails with
// [framework.ErrUncertain].
func (l *Leadership) Client() *framework.Client { return l.fence.Client(l.writing) }

// Transaction executes ops as one, while the node of the leader exists, as [Leadership.Client] does.
func (l *Leadership) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	return l.Client().Transaction().ForOperations(ctx, ops...)
}
