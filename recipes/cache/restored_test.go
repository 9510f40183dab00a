package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/cache"
)

// A server restored from a backup gives its transaction ids a second time: other data comes with a known one.
func TestCacheServerRestoredFromBackupSendsChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := testenv.Context(t)
		must := func(err error) { testclient.Must(t, err) }
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		connect := func() *framework.Client {
			return testclient.Connect(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		}
		write := func(data string) (zxid int64) {
			<-time.After(time.Second)
			c := connect()
			_, err := c.Create().OrSetData().ForPath(ctx, "/node", []byte(data))
			must(err)
			stat, err := c.CheckExists().ForPath(ctx, "/node")
			must(err)
			must(c.Close())
			return stat.Mzxid
		}
		write("one")
		client := connect()
		backup := server.Snapshot()
		zxid := write("two")
		c := cache.NewCuratorCache(client, "/node")
		var changes []string
		c.AddListener(cache.ForChanges(func(_ context.Context, old, now *cache.ChildData) {
			changes = append(changes, string(old.Data)+" > "+string(now.Data))
		}))
		typed := cache.NewTyped(c, codec.Text{})
		must(c.Start())
		defer c.Close()
		must(c.Ready(ctx))
		if text, _ := typed.Get("/node"); text != "two" {
			t.Errorf("first %q", text)
		}
		allow := server.Faults().RefuseConnects()
		server.Restore(backup)
		allow()
		if again := write("three"); again != zxid {
			t.Fatalf("the ids are %x and %x: the test shows nothing", zxid, again)
		}
		<-time.After(time.Minute) // the client is in a new session
		must(c.Sync(ctx))
		if text, _ := typed.Get("/node"); text != "three" {
			t.Errorf("then %q", text)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"two > three"}, changes); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
}
