package locks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
)

// TestSemaphoreOutageAtEachRequestIsSurvived has an acquire wait for its turn and for the one lease. At its k-th
// request the connection is cut or the session ends, and the retry policy gives up at once.
func TestSemaphoreOutageAtEachRequestIsSurvived(t *testing.T) {
	for _, expire := range []bool{false, true} {
		actions := []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter}
		if expire {
			actions = []curatortest.Action{curatortest.HoldRequest, curatortest.HoldReply}
		}
		for _, action := range actions {
			t.Run(fmt.Sprintf("%v, session ends: %t", action, expire), func(t *testing.T) {
				t.Parallel()
				testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
					return outageOfSemaphore(t, action, expire, k)
				})
			})
		}
	}
}

// firstFlight is how many requests travel with the create of a turn. When they are lost, so may be the answer to the
// create, and Acquire fails.
const firstFlight = 3

func outageOfSemaphore(t *testing.T, action curatortest.Action, expire bool, k int) (hit bool) {
	t.Helper()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	x := &turn{T: t, ctx: ctx, chroot: chroot, leases: 1, direct: newClient(t, testenv.Addr(t)+chroot)}
	first := takeLease(t, ctx, x.semaphore(x.direct))
	second := x.take(ctx, x.semaphore(x.direct))
	turns := chroot + semaphorePath + "/locks"
	testenv.Eventually(t, func() bool { return len(nodesBelow(t, testenv.Raw(t), turns)) == 1 }, "it has the turn")
	ahead := x.line()[0]

	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect,
		framework.WithRetryPolicy(retry.NTimes(0, 0)), framework.WithSessionTimeout(30*time.Second))
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
	working, finished := context.WithCancel(ctx)
	defer finished()
	session := client.SessionID()
	expired := make(chan struct{})
	go func() {
		defer close(expired)
		if !expire || injection.Wait(working) != nil {
			return
		}
		if err := testenv.Server(t).ExpireSession(session); err != nil {
			t.Error(err)
		}
		injection.Release()
	}()
	var lease *locks.Lease
	acquired := make(chan error, 1)
	go func() {
		var err error
		lease, err = x.semaphore(client).Acquire(ctx)
		acquired <- err
	}()
	unlessOver := func(waits func() bool) {
		testenv.Eventually(t, func() bool { return injection.Hits() > 0 || len(acquired) > 0 || waits() }, "it waits")
	}
	unlessOver(func() bool { return watchersOf(t, ahead) == 1 })
	returnLease(t, first)
	got := <-second
	unlessOver(func() bool { return hasWatchedLeases(proxy) })
	returnLease(t, got)
	switch err := <-acquired; {
	case err == nil:
		nodes, err := x.semaphore(x.direct).ParticipantNodes(ctx)
		switch isHeld := len(nodes) == 1 && nodes[0] == lease.Path(); {
		case err == nil && isHeld:
		case err == nil && len(nodes) == 0 && expire: // the client is about to learn of it
			<-lease.Context().Done()
		default:
			t.Errorf("request %d: %s is held, the leases are %v, error %v", k, lease.Path(), nodes, err)
		}
		if err := lease.Return(ctx); err != nil && !errors.Is(err, framework.ErrConnectionLoss) {
			t.Errorf("request %d: return: %v", k, err)
		}
	case k >= firstFlight || !errors.Is(err, framework.ErrConnectionLoss):
		t.Errorf("request %d: %v", k, err)
	}
	finished()
	<-expired
	awaitNothing(t, testenv.Addr(t)+chroot)
	return injection.Hits() > 0
}

// Several leases are taken, the answer is lost, and an operator deletes one of them before the client searches for it:
// the others are given back, and all are taken anew.
func TestLeaseLostReplyAndDeletedIsNotGranted(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"first", "second"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			testLeaseDeletedBeforeItsLostAnswer(t, which == "first")
		})
	}
}

func testLeaseDeletedBeforeItsLostAnswer(t *testing.T, first bool) {
	t.Helper()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	direct := newClient(t, testenv.Addr(t)+chroot)
	path := semaphorePath + "/leases"
	for _, node := range []string{semaphorePath + "/locks", path} { // that stay: the first transaction succeeds
		if _, err := direct.Create().CreatingParentsIfNeeded().ForPath(ctx, node, nil); err != nil {
			t.Fatal(err)
		}
	}
	client, proxy := proxied(t, chroot)
	taking := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldReply})
	s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 2)
	got := make(chan []*locks.Lease, 1)
	go func() {
		leases, err := s.AcquireN(ctx, 2)
		if err != nil {
			t.Error(err)
		}
		got <- leases
	}()
	if err := taking.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	nodes, err := direct.GetChildren().ForPath(ctx, path)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("taken are %v, %v", nodes, err)
	}
	slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	if !first {
		slices.Reverse(nodes)
	}
	if err := direct.Delete().ForPath(ctx, path+"/"+nodes[0]); err != nil {
		t.Fatal(err)
	}
	proxy.Faults().CutAll()
	leases := <-got
	left, err := direct.GetChildren().ForPath(ctx, path)
	if err != nil || len(left) != 2 || len(leases) != 2 || slices.Contains(left, nodes[1]) {
		t.Errorf("%d leases, nodes %v, %v; at first %v", len(leases), left, err, nodes)
	}
	for _, lease := range leases {
		if err := lease.Context().Err(); err != nil || !slices.Contains(left, zkpath.Node(lease.Path())) {
			t.Errorf("lease %q, %v", lease.Path(), err)
		}
	}
	if err := s.ReturnAll(ctx, leases...); err != nil {
		t.Error(err)
	}
	if left, err := direct.GetChildren().ForPath(ctx, path); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

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
