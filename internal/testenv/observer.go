package testenv

import (
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
)

// OnObserver runs a test with a way to a server without a vote and one to the leader. The servers in memory have no
// observers: there the first is a follower, and the test runs in a bubble of testing/synctest.
func OnObserver(t *testing.T, test func(t *testing.T, observer, leader Place)) {
	t.Helper()
	if !Real() {
		synctest.Test(t, func(t *testing.T) {
			e := newMemoryEnsemble(t)
			test(t, e.Followers[0], e.Leader)
		})
		return
	}
	cluster, err := curatortest.NewRealCluster(2, curatortest.WithObservers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	servers := cluster.Servers()
	test(t, newProxyPlace(t, servers[1].Addr()), newProxyPlace(t, servers[0].Addr()))
}
