package locks_test

import (
	"context"
	"testing"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// inIdleNamespace runs a test with clients in a namespace, on a server that removes containers that were never used.
// Each client has created the nodes of its namespace.
func inIdleNamespace(t *testing.T, test func(t *testing.T, newClient func() *framework.Client, idle func())) {
	t.Helper()
	testenv.WithoutUnusedContainers(t, func(t *testing.T, place testenv.Place, idle func()) {
		newClient := func() *framework.Client {
			client := newClient(t, place.Addr(), framework.WithDialer(place.DialContext), framework.WithNamespace("team/app"))
			if _, err := client.CheckExists().ForPath(testenv.Context(t), "/locks"); err != nil {
				t.Fatal(err)
			}
			return client
		}
		test(t, newClient, func() { idle(); idle() }) // the outer node of the namespace goes after the inner one
	})
}

func TestEveryLockUnusedContainersRemovedIsAcquired(t *testing.T) {
	t.Parallel()
	inIdleNamespace(t, func(t *testing.T, newClient func() *framework.Client, idle func()) {
		all := []locks.InterProcessLock{
			locks.NewInterProcessMutex(newClient(), "/locks/mutex"),
			locks.NewInterProcessMutex(newClient(), "/mutex"), // at the top of the namespace
			locks.NewInterProcessSemaphoreMutex(newClient(), "/locks/semaphore-mutex"),
			locks.NewInterProcessReadWriteLock(newClient(), "/locks/read-write").ReadLock(),
			locks.NewInterProcessReadWriteLock(newClient(), "/locks/read-write").WriteLock(),
			locks.NewInterProcessMultiLock(
				locks.NewInterProcessMutex(newClient(), "/locks/a"), locks.NewInterProcessMutex(newClient(), "/locks/b")),
		}
		for range 2 {
			idle()
			for _, lock := range all {
				release(t, acquire(t, testenv.Context(t), lock))
			}
		}
	})
}

// The semaphore has no leases at first, so the parent node of the leases is never used.
func TestSemaphoreUnusedContainersRemovedGrantsFirstLease(t *testing.T) {
	t.Parallel()
	inIdleNamespace(t, func(t *testing.T, newClient func() *framework.Client, idle func()) {
		count := &sharedCount{changed: make(chan struct{})}
		s := locks.NewInterProcessSemaphoreV2(newClient(), "/leases", 0, locks.WithLeaseCount(count))
		got := make(chan error, 1)
		go func() {
			lease, err := s.Acquire(t.Context())
			if err == nil {
				err = lease.Return(context.WithoutCancel(t.Context()))
			}
			got <- err
		}()
		idle()
		count.set(1)
		if err := <-got; err != nil {
			t.Error(err)
		}
		idle()
		lease := takeLease(t, testenv.Context(t), s)
		if err := lease.Return(testenv.Context(t)); err != nil {
			t.Error(err)
		}
	})
}
