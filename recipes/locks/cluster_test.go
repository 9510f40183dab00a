package locks_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// crowd has each client take the one lease of a semaphore again and again, and keep it until it is lost. It returns how
// many have it.
func crowd(t *testing.T, clients []*framework.Client) *atomic.Int32 {
	t.Helper()
	var holders atomic.Int32
	ctx, cancel := context.WithCancel(testenv.Context(t))
	var wg sync.WaitGroup
	for _, client := range clients {
		s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 1)
		wg.Go(func() {
			for ctx.Err() == nil {
				lease, err := s.Acquire(ctx)
				if err != nil {
					continue // the retries were used up
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d have the lease", n)
				}
				select {
				case <-lease.Context().Done():
				case <-ctx.Done():
				}
				holders.Add(-1)
				_ = lease.Return(lease.Context()) // lost with its node, or with its client in a moment
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return &holders
}

// In Java: TestInterProcessSemaphoreCluster.testKilledServerWithEnsembleProvider.
func TestSemaphoreServerDiesMovesToOthers(t *testing.T) {
	t.Parallel()
	first, second := testenv.NewServer(t), testenv.NewServer(t)
	servers := framework.FixedEnsemble(first.ConnectString())
	var clients []*framework.Client
	for range 4 {
		clients = append(clients, newClient(t, "", framework.WithEnsembleProvider(servers),
			framework.WithSessionTimeout(testenv.SessionTimeout)))
	}
	holders := crowd(t, clients)
	testenv.Eventually(t, func() bool { return holders.Load() == 1 }, "one has it")
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return holders.Load() == 0 }, "none has it without a server")
	servers.SetConnectionString(second.ConnectString())
	testenv.Eventually(t, func() bool { return holders.Load() == 1 }, "one has it on the other server")
}

// In Java: TestInterProcessSemaphoreCluster.testCluster.
func TestSemaphoreWithoutQuorumGrantsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := curatortest.NewClusterT(t, 3, curatortest.WithoutPort())
		var clients []*framework.Client
		for range 4 {
			clients = append(clients, newClient(t, cluster.ConnectString(),
				framework.WithSessionTimeout(testenv.SessionTimeout), framework.WithDialer(cluster.DialContext)))
		}
		holders := crowd(t, clients)
		testenv.Eventually(t, func() bool { return holders.Load() == 1 }, "one has it")
		for _, server := range cluster.Servers()[:2] {
			if err := cluster.KillServer(server); err != nil {
				t.Fatal(err)
			}
		}
		testenv.Eventually(t, func() bool { return holders.Load() == 0 }, "none has it without a quorum")
		if err := cluster.RestartServer(cluster.Servers()[0]); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, func() bool { return holders.Load() == 1 }, "one has it again")
	})
}
