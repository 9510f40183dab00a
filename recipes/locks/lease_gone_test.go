package locks_test

import (
	"slices"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// The answer to the transaction is lost, and another client deletes one of the leases before the search.
func TestLeaseDeletedBeforeFoundIsNotGranted(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	client, proxy := proxied(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	seen := locks.NewInterProcessSemaphoreV2(direct, semaphorePath, 2)
	s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 2)
	if _, err := direct.Create().CreatingParentsIfNeeded().ForPath(ctx, semaphorePath+"/leases", nil); err != nil {
		t.Fatal(err)
	}
	connect := proxy.Faults().RefuseConnects()
	lost := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.CutAfter})
	got := make(chan []*locks.Lease, 1)
	go func() {
		leases, err := s.AcquireN(ctx, 2)
		if err != nil {
			t.Error(err)
		}
		got <- leases
	}()
	if err := lost.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	nodes, err := seen.ParticipantNodes(ctx)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("leases %v, error %v", nodes, err)
	}
	deleteNode(t, direct, nodes[0])
	connect()
	var paths []string
	leases := <-got
	for _, lease := range leases {
		paths = append(paths, lease.Path())
	}
	testenv.Eventually(t, func() bool {
		nodes, err = seen.ParticipantNodes(ctx)
		return err == nil && len(nodes) == 2
	}, "two leases are held")
	if slices.Sort(paths); !slices.Equal(slices.Sorted(slices.Values(nodes)), paths) {
		t.Errorf("it has %v, the nodes are %v", paths, nodes)
	}
	if err := s.ReturnAll(ctx, leases...); err != nil {
		t.Error(err)
	}
	awaitNothing(t, testenv.Addr(t)+chroot)
}
