package claim

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// TestClaimsOfRefusedBatchAreKeptInOrderWhenConnectionIsLost loses the connection before the items of a refused batch
// can be deleted one by one. An item behind them is deleted already: they are claimed before it is delivered.
func TestClaimsOfRefusedBatchAreKeptInOrderWhenConnectionIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, server := t.Context(), curatortest.NewServerT(t, curatortest.WithoutPort())
		dialer := framework.WithDialer(server.DialContext)
		client, err := framework.New(server.Addr(), dialer, framework.WithoutEnsembleTracker())
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		p := &node.Paths{Client: client, Queue: "/queue"}
		flight := builders.Pipelined(ctx)
		claims := make([]*DeleteClaim, 3)
		nothing := func([]byte) (any, error) { return struct{}{}, nil }
		for i := range claims {
			create := client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
			path, err := create.ForPath(ctx, "/queue/queue-", nil)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := node.ParseName(path[len("/queue/"):])
			claims[i] = &DeleteClaim{Paths: p, Name: n, Decode: nothing}
			claims[i].Begin(flight)
			if !claims[i].IsReadable(ctx) {
				t.Fatal(claims[i].Err)
			}
		}
		server.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.ReplyError, Err: zk.ErrNoNode})
		DeleteTogether(flight, p, claims[:2])
		claims[2].Submit(flight)
		<-claims[2].Done()
		server.Faults().Cut(client.SessionID())
		<-client.CheckExists().Submit(flight, "/queue").Done() // the connection is known to be lost
		for i, c := range claims {
			if m, err := c.Resolve(ctx); m == nil || err != nil {
				t.Errorf("claim %d: %v, %v", i, m, err)
			}
		}
	})
}
