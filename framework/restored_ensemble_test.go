package framework_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
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

// An operator restores a backup while the client runs. The server refuses clients that have seen later transactions, so
// the session cannot continue. The client gets another one, and needs no restart.
func TestClientContinuesAfterServerRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := testenv.Context(t)
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client, recorded := connectRecorded(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		backup := server.Snapshot()
		for range 100 {
			_, err := client.SetData().ForPath(ctx, "/", nil)
			must(t, err)
		}
		server.Restore(backup)
		recorded.want(t, suspended, lost, reconnected)

		changed := make(chan zk.Event, 1)
		watcher := callbacks.NewWatcher(func(_ context.Context, ev zk.Event) { changed <- ev })
		if stat, err := client.CheckExists().UsingWatcher(watcher).ForPath(ctx, "/n"); err != nil || stat != nil {
			t.Errorf("got %v, %v", stat, err)
		}
		_, err := client.Create().WithMode(builders.Ephemeral).ForPath(ctx, "/n", nil)
		must(t, err)
		if ev := <-changed; ev.Type != zk.EventNodeCreated || ev.Path != "/n" {
			t.Errorf("event %v", ev)
		}
		if node, ok := server.Node("/n"); !ok || node.Stat.EphemeralOwner != client.SessionID() {
			t.Errorf("got %v, %v", node, ok)
		}
	})
}
