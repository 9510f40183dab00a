package testenv

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/curatortest"
)

// maxNeverUsed is the time after which ZooKeeper 3.10 removes a container that never had a child. Earlier versions keep
// such containers by default.
const maxNeverUsed = 5 * time.Minute

// WithoutUnusedContainers runs a test on a server that removes containers that were never used, as ZooKeeper 3.10 does.
// idle returns when those that exist at its call are gone. Time is virtual, on Apache ZooKeeper real and shorter.
func WithoutUnusedContainers(t *testing.T, test func(t *testing.T, place Place, idle func())) {
	t.Helper()
	if !Real() {
		synctest.Test(t, func(t *testing.T) {
			server := curatortest.NewServerT(t, curatortest.WithoutPort(), curatortest.WithMaxNeverUsed(maxNeverUsed))
			test(t, server, func() { <-time.After(maxNeverUsed + 2*time.Minute) })
		})
		return
	}
	const short = time.Second
	server, err := newInstance(curatortest.WithMaxNeverUsed(short))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	test(t, newProxyPlace(t, server.Addr()), func() { <-time.After(short + 10*sweepInterval) })
}
