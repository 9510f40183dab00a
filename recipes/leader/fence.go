package leader

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
)

// Fence returns a transaction operation that checks the leadership. A transaction of any client of the same ensemble
// takes effect only while the node of the leader exists. Otherwise it fails with [ErrLeadershipLost]. The server
// decides, so it also refuses a process that was stopped and has not noticed that another one leads.
func (l *Leadership) Fence() builders.TransactionOperation { return l.fence.Operation() }

// Client returns a view of the latch's or selector's client whose writes take effect only while the node of the leader
// exists: see [framework.Client.Fenced]. A write fails with [ErrLeadershipLost] if the node is gone, and without a
// request after leadership is lost. It fails with [framework.ErrUncertain] if its reply is lost and a retry could write
// twice. It fails with both if it was retried and leadership was lost by then. After InterruptLeadership, and while a
// selector closes, writes still take effect until the function has returned.
func (l *Leadership) Client() *framework.Client { return l.fence.Client(l.writeCtx) }

// Transaction executes ops as one transaction of [Leadership.Client].
func (l *Leadership) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	return l.Client().Transaction().ForOperations(ctx, ops...)
}
