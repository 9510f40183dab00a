package leader

import (
	"context"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// Fence returns an operation that checks that leadership lasts. Use it in a transaction of any view of the latch's or
// selector's client: the transaction takes effect only while the node of the leader exists. Otherwise it fails with
// [ErrLeadershipLost]. The server decides, so it also refuses a process that was stopped and does not know that another
// one leads.
func (l *Leadership) Fence() builders.TransactionOperation {
	if l.isNone() {
		return noClient().TransactionOp().Fence(ErrLeadershipLost, "/")
	}
	return l.fence.Operation()
}

// Client returns a view of the latch's or selector's client whose writes take effect only while the node of the leader
// exists. See [framework.Client.Fenced]. A write fails with [ErrLeadershipLost] if the server finds that the node is
// gone, and without a request if leadership is known to be lost. It fails with [framework.ErrUncertain] if its answer
// is lost and it could take effect twice, or, together with ErrLeadershipLost, if it was tried again and leadership was
// lost by then. After InterruptLeadership, and while a selector closes, writes still take effect until the function has
// returned. The client of a nil Leadership has no connection: everything fails with ErrLeadershipLost, reads too.
func (l *Leadership) Client() *framework.Client {
	if l.isNone() {
		return noClient()
	}
	return l.fence.Client(l.writing)
}

// noClient returns the client of a nil Leadership.
var noClient = lineup.RefusingClient(ErrLeadershipLost)

// Transaction executes ops as one transaction of [Leadership.Client].
func (l *Leadership) Transaction(ctx context.Context, ops ...builders.TransactionOperation) (
	[]callbacks.OperationResult, error,
) {
	if l.isNone() {
		return nil, errtext.Wrap(ErrLeadershipLost, "leader", "transaction")
	}
	return l.Client().Transaction().ForOperations(ctx, ops...)
}
