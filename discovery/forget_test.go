package discovery_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// A discovery forgets what was closed before it: a program may open and close caches as long as it lives.
func TestDiscoveryForgetsCachesThatAreClosed(t *testing.T) {
	t.Parallel()
	client := testclient.Connect(t, curatortest.NewServerT(t).ConnectString())
	ctx := testenv.Context(t)
	d := discovery.New[string](client, base)
	testclient.Must(t, d.Start())
	open := func() weak.Pointer[discovery.ServiceCache[string]] {
		c := d.Cache("orders")
		testclient.Must(t, c.Start(ctx))
		testclient.Must(t, c.Close())
		return weak.Make(c)
	}
	c := open()
	testenv.Eventually(t, func() bool {
		runtime.GC()
		return c.Value() == nil
	}, "the cache is gone")
	testclient.Must(t, d.Close(ctx))
}
