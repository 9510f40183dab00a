package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// The ensemble is restored from an older state, so its transaction ids are lower. A setData whose answer is lost there
// is found to be ours.
func TestIdempotentSetDataAfterEnsembleRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := testenv.Context(t)
		var server atomic.Pointer[curatortest.Server]
		before := curatortest.NewServerT(t, curatortest.WithoutPort())
		after := curatortest.NewServerT(t, curatortest.WithoutPort())
		server.Store(before)
		client, recorded := connectRecorded(t, before.ConnectString(), framework.WithDialer(
			func(ctx context.Context, network, address string) (net.Conn, error) {
				return server.Load().DialContext(ctx, network, address)
			}))
		for range 100 {
			_, err := client.SetData().ForPath(ctx, "/", nil)
			must(t, err)
		}
		server.Store(after)
		before.Faults().CutAll()
		recorded.want(t, suspended, lost, reconnected)

		_, err := client.Create().ForPath(ctx, "/n", []byte("old"))
		must(t, err)
		answer := after.Faults().Add(curatortest.Rule{Ops: []string{"setData"}, Count: 1, Action: curatortest.CutAfter})
		stat, err := client.SetData().Idempotent().WithVersion(0).ForPath(ctx, "/n", []byte("new"))
		if err != nil || stat.Version != 1 {
			t.Errorf("got %v, %v", stat, err)
		}
		if answer.Hits() != 1 {
			t.Error("no answer is lost")
		}
	})
}
