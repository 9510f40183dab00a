package leader

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// Fence returns a transaction operation that checks the leadership. A transaction of any view of the latch's or
// selector's client takes effect only while the node of the leader exists. Otherwise it fails with [ErrLeadershipLost].
// The server decides, so it also refuses a process that was stopped and has not noticed that another one leads.
func (l *Leadership) Fence() builders.TransactionOperation {
	if l.isNil() {
		return lostClient().TransactionOp().Fence(ErrLeadershipLost, "/")
	}
	return l.fence.Operation()
}

// Client returns a view of the latch's or selector's client whose writes take effect only while the node of the leader
// exists: see [framework.Client.Fenced]. A write fails with [ErrLeadershipLost] if the node is gone, and without a
// request after leadership is lost. It fails with [framework.ErrUncertain] if its reply is lost and a retry could write
// twice. It fails with both if it was retried and leadership was lost by then. After InterruptLeadership, and while a
// selector closes, writes still take effect until the function has returned. The client of a nil Leadership has no
// connection: reads and writes fail with [ErrLeadershipLost].
func (l *Leadership) Client() *framework.Client {
	if l.isNil() {
		return lostClient()
	}
	return l.fence.Client(l.writeCtx)
}

// lostClient returns the client of a nil Leadership.
var lostClient = waitqueue.RefusingClient(ErrLeadershipLost)

// Transaction executes ops as one transaction of [Leadership.Client].
func (l *Leadership) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	if l.isNil() {
		return nil, errtext.Wrap(ErrLeadershipLost, "leader", "transaction")
	}
	return l.Client().Transaction().ForOperations(ctx, ops...)
}
