package builders_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/retry"
)

// A delete of a tree loses an answer. Its retry has a request for each node. What is submitted meanwhile does not wait
// for them all.
func TestDeleteOfTreeHoldsUpNothingElseAfterLostAnswer(t *testing.T) {
	for _, lost := range []int{0, 5} { // the first one is for the node, and says that it is not empty
		t.Run(fmt.Sprintf("answer %d", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { deleteTreeWithLostAnswer(t, lost) })
		})
	}
}

func deleteTreeWithLostAnswer(t *testing.T, lost int) {
	t.Helper()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	start := func() *framework.Client {
		return testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext),
			framework.WithRetryPolicy(retry.Forever(time.Second)))
	}
	client, other := start(), start()
	op := other.TransactionOp()
	ops := []builders.TransactionOperation{op.Create().ForPath("/x", nil), op.Create().ForPath("/t", nil)}
	for i := range 300 {
		ops = append(ops, op.Create().ForPath(fmt.Sprintf("/t/%05d", i), nil))
	}
	_, err := other.Transaction().ForOperations(t.Context(), ops...)
	testclient.Must(t, err)
	server.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, SessionID: client.SessionID(), Skip: lost, Count: 1, Action: curatortest.CutAfter,
	})
	deletes := server.Faults().Add(curatortest.Rule{ // each takes its time
		Ops: []string{"delete"}, SessionID: client.SessionID(), Action: curatortest.DelayReply, Delay: 10 * time.Millisecond,
	})
	done := make(chan error, 1)
	testclient.Must(t, client.Delete().DeletingChildrenIfNeeded().InBackground(
		func(_ context.Context, ev callbacks.Event) { done <- ev.Err }).ForPath(t.Context(), "/t"))
	<-time.After(2 * time.Second) // the connection is back, and the retry has begun
	before := deletes.Hits()
	_, err = client.SetData().ForPath(t.Context(), "/x", []byte("x"))
	testclient.Must(t, err)
	if behind := deletes.Hits() - before; before < 10 || behind > 10 {
		t.Errorf("after %d deletes, a write waits behind %d", before, behind)
	}
	testclient.Must(t, <-done)
}
