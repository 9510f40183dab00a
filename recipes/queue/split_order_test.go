package queue

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
)

// TestClaimsOfRefusedBatchAreKeptInOrderWhenConnectionIsLost loses the connection before the items of a refused batch
// can be deleted one by one. An item behind them is deleted already: they are claimed before it is delivered.
func TestClaimsOfRefusedBatchAreKeptInOrderWhenConnectionIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, server := t.Context(), curatortest.NewServerT(t, curatortest.InMemory())
		dialer := framework.WithDialer(server.DialContext)
		client, err := framework.New(server.Addr(), dialer, framework.WithEnsembleTracker(false))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		p := &place{client: client, path: "/queue"}
		w, flight := newQueueWatch(p), builders.Pipelined(ctx)
		claims := make([]*deleteClaim, 3)
		for i := range claims {
			create := client.Create().CreatingParentsIfNeeded().WithMode(builders.PersistentSequential)
			path, err := create.ForPath(ctx, "/queue/queue-", nil)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := parseName(path[len("/queue/"):])
			claims[i] = &deleteClaim{place: p, name: n, watch: w, epoch: w.current(), decode: anyBytes}
			claims[i].begin(flight)
			if !claims[i].isReadable(ctx) {
				t.Fatal(claims[i].err)
			}
		}
		server.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.ReplyError, Err: zk.ErrNoNode})
		deleteTogether(flight, p, claims[:2], func() {})
		claims[2].submit(flight)
		<-claims[2].done()
		server.Faults().Cut(client.SessionID())
		<-client.CheckExists().Submit(flight, "/queue").Done() // the connection is known to be lost
		for i, c := range claims {
			if m, err := c.resolve(ctx); m == nil || err != nil {
				t.Errorf("claim %d: %v, %v", i, m, err)
			}
		}
	})
}
