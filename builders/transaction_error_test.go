package builders_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

func TestFailedTransactionNamesItsOperationAndPath(t *testing.T) {
	t.Parallel()
	type op = builders.TransactionOp
	tests := []struct {
		fail func(op) builders.TransactionOperation
		want error
		text string
	}{
		{
			func(op op) builders.TransactionOperation { return op.SetData().WithVersion(7).ForPath("/there", nil) },
			zk.ErrBadVersion, "curator: multi: op 2 setData /there: version conflict",
		},
		{
			func(op op) builders.TransactionOperation { return op.Create().ForPath("/there", nil) },
			zk.ErrNodeExists, "curator: multi: op 2 create /there: node already exists",
		},
		{
			func(op op) builders.TransactionOperation { return op.Delete().ForPath("/none/n") },
			zk.ErrNoNode, "curator: multi: op 2 delete /none/n: node does not exist",
		},
		{
			func(op op) builders.TransactionOperation { return op.Check().ForPath("/none") },
			zk.ErrNoNode, "curator: multi: op 2 check /none: node does not exist",
		},
		{
			func(op op) builders.TransactionOperation { return op.Create().WithProtection().ForPath("/none/n", nil) },
			zk.ErrNoNode, "curator: multi: op 2 create /none/n: node does not exist",
		},
	}
	for _, w := range ways {
		for _, ns := range []string{"", "ns"} {
			client, tr := setUp(t, framework.WithNamespace(ns))
			succeed(t, w.create(t, client.Create(), "/there", nil))
			for _, tt := range tests {
				op := client.TransactionOp()
				ev := w.transaction(t, client.Transaction(),
					op.Create().ForPath("/n", nil), op.Delete().ForPath("/n"), tt.fail(op), op.Check().ForPath("/there"))
				wantErr(t, ev.Err, tt.want, "multi", "")
				equal(t, "text", ev.Err.Error(), tt.text)
				equal(t, "error of the result", ev.Results[2].Err, tt.want, sameError)
				var opErr *builders.OpError
				if errors.As(ev.Err, &opErr) {
					equal(t, "type", opErr.ErrorType(), (&builders.OpError{Err: tt.want}).ErrorType())
				}
			}
			equal(t, "nodes", tr.children("/"+ns), []string{"there"})
		}
	}
}

func TestSubmittedTransactionNamesItsOperationAndPath(t *testing.T) {
	t.Parallel()
	client, _ := setUp(t)
	ctx := testenv.Context(t)
	f := client.Transaction().Submit(ctx, client.TransactionOp().Check().ForPath("/none"))
	for range 2 { // the error is the same for all waiters
		results, err := f.Wait(ctx)
		if len(results) != 1 || results[0].ForPath != "/none" || !errors.Is(results[0].Err, zk.ErrNoNode) {
			t.Errorf("the results are %+v", results)
		}
		wantErr(t, err, zk.ErrNoNode, "multi", "")
		equal(t, "text", fmt.Sprint(err), "curator: multi: op 0 check /none: node does not exist")
	}
}

// Without an answer there is no operation to name.
func TestTransactionWithoutAnAnswerNamesNoOperation(t *testing.T) {
	t.Parallel()
	client := startClient(t, "127.0.0.1:1", impatient()...)
	for _, w := range ways {
		ev := w.transaction(t, client.Transaction(), client.TransactionOp().Check().ForPath("/a"))
		if !errors.Is(ev.Err, framework.ErrNotSent) || strings.Contains(ev.Err.Error(), "op 0") || ev.Results != nil {
			t.Errorf("%s: %v, %v", w, ev.Results, ev.Err)
		}
	}
}
