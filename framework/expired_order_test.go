package framework_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/retry"
)

// The session ends while operations are in flight, wait for a retry, and wait for a connection.
func TestOperationsOfExpiredSessionEndInOrder(t *testing.T) {
	t.Run("by the server", func(t *testing.T) {
		testOrderOfEnds(t, func(client *framework.Client, server *curatortest.Server, suspended <-chan struct{}) func() {
			restore := server.Faults().RefuseConnects()
			server.Faults().KillSession(client.SessionID())
			server.Faults().CutAll()
			return func() {
				<-suspended
				restore()
			}
		})
	})
	t.Run("by Reset", func(t *testing.T) {
		testOrderOfEnds(t, func(client *framework.Client, server *curatortest.Server, _ <-chan struct{}) func() {
			held := server.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.HoldReply, Count: 1})
			return func() { // the connection stands, with operations in flight and others that are not sent
				if err := held.Wait(testenv.Context(t)); err != nil {
					t.Error(err)
				}
				if err := client.Reset(); err != nil {
					t.Error(err)
				}
				held.Release()
			}
		})
	})
}

// sessionEnder ends the session of the client. onward lets the next one begin.
type sessionEnder func(client *framework.Client, server *curatortest.Server, suspended <-chan struct{}) (onward func())

func testOrderOfEnds(t *testing.T, endSession sessionEnder) {
	ctx := testenv.Context(t)
	server := curatortest.NewServerT(t)
	client, err := framework.New(server.ConnectString(),
		framework.WithRetryPolicy(retry.SessionFailed(retry.NTimes(3, time.Millisecond))))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	suspended := make(chan struct{}, 1)
	client.AddConnectionStateListener(func(_ context.Context, s framework.ConnectionState) {
		if s == framework.Suspended {
			suspended <- struct{}{}
		}
	})
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	type end struct {
		i   int
		err error
	}
	ends := make(chan end, n)
	var onward func()
	for i := range n {
		switch i {
		case n / 10:
			onward = endSession(client, server, suspended)
		case n / 2: // others come while it connects
			onward()
		}
		err := client.GetData().InBackground(func(_ context.Context, ev callbacks.Event) { ends <- end{i, ev.Err} }).
			ForPath(ctx, "/")
		if err != nil {
			t.Fatal(err)
		}
	}
	var expired []int
	for range n {
		e := <-ends
		switch {
		case errors.Is(e.err, zk.ErrSessionExpired):
			expired = append(expired, e.i)
		case e.err != nil:
			t.Fatalf("operation %d: %v", e.i, e.err)
		}
	}
	if len(expired) < n/3 {
		t.Errorf("%d operations have expired", len(expired))
	}
	if !slices.IsSorted(expired) {
		t.Error("they end out of order")
	}
}
