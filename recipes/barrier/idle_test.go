package barrier_test

import (
	"errors"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/barrier"
)

// The nodes of the namespace and of the path are containers, which a server of ZooKeeper 3.10 removes if they are never
// used.
func TestBarrierUnusedContainersRemovedWorks(t *testing.T) {
	t.Parallel()
	testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
		newClient := func() *framework.Client {
			return testclient.Connect(t, place.Addr(),
				framework.WithDialer(place.DialContext), framework.WithNamespace("team/app"))
		}
		one, two := newClient(), newClient()
		testclient.Must(t, one.CreateContainers(testenv.Context(t), "/barriers/double"))
		b := barrier.NewDistributedBarrier(one, "/barriers/single")
		testclient.Must(t, b.WaitOnBarrier(testenv.Context(t)))
		members := []*barrier.DistributedDoubleBarrier{
			barrier.NewDistributedDoubleBarrier(one, "/barriers/double", 2),
			barrier.NewDistributedDoubleBarrier(two, "/barriers/double", 2),
		}
		for range 2 {
			for range 3 { // the outer nodes go after the inner ones
				idle()
			}
			ctx := testenv.Context(t)
			done := make(chan error, len(members))
			for _, m := range members {
				go func() {
					err := m.Enter(ctx)
					done <- errors.Join(err, m.Leave(ctx))
				}()
			}
			for range members {
				testclient.Must(t, <-done)
			}
			testclient.Must(t, b.WaitOnBarrier(ctx))
			testclient.Must(t, b.SetBarrier(ctx))
			testclient.Must(t, b.RemoveBarrier(ctx))
		}
	})
}
