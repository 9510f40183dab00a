package locks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// turn is a waiter with the turn of a semaphore, which is about to end, and others that queue.
type turn struct {
	*testing.T
	ctx    context.Context
	chroot string
	leases int
	direct *framework.Client
	path   string // of the node of the first
	first  <-chan *locks.Lease
	end    *curatortest.Injection // holds up the end of the turn
}

// newTurn has so many leases, all of them free.
func newTurn(t *testing.T, leases int) *turn {
	t.Helper()
	x := &turn{T: t, ctx: testenv.Context(t), chroot: testenv.Chroot(t), leases: leases}
	x.direct = newClient(t, testenv.Addr(t)+x.chroot)
	for _, node := range []string{"/locks", "/leases"} { // that stay when they are empty: a container may go at any time
		if _, err := x.direct.Create().CreatingParentsIfNeeded().ForPath(x.ctx, semaphorePath+node, nil); err != nil {
			t.Fatal(err)
		}
	}
	client, proxy := proxied(t, x.chroot)
	x.end = proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	x.first = x.take(x.ctx, x.semaphore(client))
	if err := x.end.Wait(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.path = x.line()[0]
	return x
}

func (x *turn) semaphore(client *framework.Client) *locks.InterProcessSemaphoreV2 {
	return locks.NewInterProcessSemaphoreV2(client, semaphorePath, x.leases)
}

// line returns the nodes of the turns, in order.
func (x *turn) line() (paths []string) {
	x.Helper()
	children, err := x.direct.GetChildren().ForPath(x.ctx, semaphorePath+"/locks")
	if err != nil {
		x.Fatal(err)
	}
	slices.SortFunc(children, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	for _, child := range children {
		paths = append(paths, semaphorePath+"/locks/"+child)
	}
	return paths
}

// take takes a lease and does not wait for it; nil comes if ctx ends.
func (x *turn) take(ctx context.Context, s *locks.InterProcessSemaphoreV2) <-chan *locks.Lease {
	got := make(chan *locks.Lease, 1)
	go func() {
		lease, err := s.Acquire(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			x.Error(err)
		}
		got <- lease
	}()
	return got
}

// behind lines up one more, and waits until it waits for the last of the others. It returns the path of its node, too.
func (x *turn) behind(ctx context.Context, s *locks.InterProcessSemaphoreV2) (got <-chan *locks.Lease, path string) {
	x.Helper()
	before := x.line()
	got = x.take(ctx, s)
	testenv.Eventually(x, func() bool { return watchersOf(x, before[len(before)-1]) == 1 },
		"it waits for the one before it")
	after := x.line()
	return got, after[len(after)-1]
}

// heir is one more behind the others, with what passes between it and the server from then on.
func (x *turn) heir() (got <-chan *locks.Lease, path string, proxy *curatortest.Proxy) {
	x.Helper()
	client, proxy := proxied(x, x.chroot)
	got, path = x.behind(x.ctx, x.semaphore(client))
	proxy.Faults().ResetTrace()
	return got, path, proxy
}

// receives waits for a lease and returns it.
func (x *turn) receives(got <-chan *locks.Lease) {
	x.Helper()
	select {
	case lease := <-got:
		if lease == nil {
			x.Fatal("no lease")
		}
		returnLease(x.T, lease)
	case <-x.ctx.Done():
		x.Fatal("no lease in time")
	}
}

// requests returns the requests that have passed, with their paths, and the events.
func (x *turn) requests(proxy *curatortest.Proxy) (ops []string) {
	for _, e := range proxy.Faults().Trace() {
		switch {
		case e.Op == "heartbeat": // comes when its time has come
		case strings.Contains(e.Path, "/leases/") && e.Op != "multi" && e.Op != "delete": // a lease that lasts is watched
		case e.Op == "notification":
			ops = append(ops, e.Op)
		case !e.Reply && (e.Op == "getChildren2" || e.Op == "exists"):
			ops = append(ops, e.Op+" "+strings.TrimPrefix(e.Path, x.chroot+semaphorePath))
		case !e.Reply && e.Op != "ping":
			ops = append(ops, e.Op)
		}
	}
	return ops
}

// Only the first is ahead, and its turn ends.
func TestLeaseBehindAnotherRequests(t *testing.T) {
	t.Parallel()
	look := []string{"notification", "getChildren2 /locks", "exists /leases"}
	for _, tt := range []struct {
		name   string
		leases int
		take   func(ctx context.Context, c *framework.Client) ([]*locks.Lease, error)
		want   []string
	}{
		{
			"one of those that are free", 2,
			func(ctx context.Context, c *framework.Client) ([]*locks.Lease, error) {
				return locks.NewInterProcessSemaphoreV2(c, semaphorePath, 2).AcquireN(ctx, 1)
			},
			[]string{"multi", "delete"},
		},
		{
			"several", 3,
			func(ctx context.Context, c *framework.Client) ([]*locks.Lease, error) {
				return locks.NewInterProcessSemaphoreV2(c, semaphorePath, 3).AcquireN(ctx, 2)
			},
			[]string{"multi", "delete", "delete"},
		},
		{
			"the only one", 1,
			func(ctx context.Context, c *framework.Client) ([]*locks.Lease, error) {
				return locks.NewInterProcessSemaphoreV2(c, semaphorePath, 1).AcquireN(ctx, 1)
			},
			// The transaction fires the watch that the wait has left.
			[]string{"getChildren2 /leases", "notification", "getChildren2 /leases", "multi", "notification", "delete"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTurn(t, tt.leases)
			client, proxy := proxied(t, x.chroot)
			done := make(chan error, 1)
			go func() {
				leases, err := tt.take(x.ctx, client)
				if err == nil {
					err = x.semaphore(client).ReturnAll(x.ctx, leases...)
				}
				done <- err
			}()
			testenv.Eventually(t, func() bool { return watchersOf(t, x.path) == 1 }, "it waits for the first")
			proxy.Faults().ResetTrace()
			x.end.Release()
			if tt.leases == 1 {
				awaitLeaseWaiter(t, proxy)
				x.receives(x.first)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(look), tt.want...)
			if diff := cmp.Diff(want, x.requests(proxy)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if tt.leases > 1 {
				x.receives(x.first)
			}
		})
	}
}

// The lease is returned between the count that comes with the line and the list that sets the watch.
func TestLeaseReturnedBeforeWatchIsTaken(t *testing.T) {
	t.Parallel()
	x := newTurn(t, 1)
	next, _, proxy := x.heir()
	list := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"getChildren2"}, Path: "/**/leases", Count: 1, Action: curatortest.HoldRequest,
	})
	x.end.Release()
	if err := list.Wait(x.ctx); err != nil {
		t.Fatal(err)
	}
	x.receives(x.first)
	list.Release()
	x.receives(next)
}

func TestTurnCancelledIsNotTaken(t *testing.T) {
	t.Parallel()
	x := newTurn(t, 3)
	ctx, giveUp := context.WithCancel(x.ctx)
	defer giveUp()
	middle, _ := x.behind(ctx, x.semaphore(x.direct))
	last, _ := x.behind(x.ctx, x.semaphore(x.direct))
	giveUp()
	if lease := <-middle; lease != nil {
		t.Fatal("a lease beside that of the first")
	}
	testenv.Eventually(t, func() bool { return len(x.line()) == 2 && watchersOf(t, x.path) == 1 },
		"the last waits for the first")
	if len(last) != 0 {
		t.Fatal("a lease beside that of the first")
	}
	x.end.Release()
	x.receives(x.first)
	x.receives(last)
}

// ZooKeeper removes an empty container, at any time.
func TestTurnLeaseContainerDeletedTakesLease(t *testing.T) {
	t.Parallel()
	x := newTurn(t, 1)
	next, path := x.behind(x.ctx, x.semaphore(x.direct))
	if err := x.direct.Delete().ForPath(x.ctx, semaphorePath+"/leases"); err != nil {
		t.Fatal(err)
	}
	x.end.Release()
	first := <-x.first
	if line := x.line(); !slices.Equal(line, []string{path}) {
		t.Errorf("the line is %q, not %s alone, which waits for the lease of the first", line, path)
	}
	returnLease(t, first)
	x.receives(next)
}

// The connection is cut under the list of the line and the count behind it. If both were sent again, each in its own
// time, the count could come first, and miss the lease of the one before.
func TestLeaseCountIsNotOlderThanList(t *testing.T) {
	t.Parallel()
	x := newTurn(t, 1)
	proxy, connect := newProxy(t, x.chroot)
	var retried atomic.Int64
	client := newClient(t, connect, framework.WithRetryPolicy(retry.Func(func() backoff.BackOff {
		pause := max(0, 300-100*time.Duration(retried.Add(1))) * time.Millisecond // the later the sooner
		return backoff.NewConstantBackOff(pause)
	})))
	next, _ := x.behind(x.ctx, x.semaphore(client))
	proxy.Faults().ResetTrace()
	retried.Store(0)
	list := curatortest.Rule{Ops: []string{"getChildren2"}, Path: "/**/locks", Count: 1, Action: curatortest.CutBefore}
	cut := proxy.Faults().Add(list)
	list.Skip, list.Action = 1, curatortest.HoldRequest
	again := proxy.Faults().Add(list)
	proxy.Faults().CutAll()
	for _, in := range []*curatortest.Injection{cut, again} {
		if err := in.Wait(x.ctx); err != nil {
			t.Fatal(err)
		}
	}
	x.end.Release()
	first := <-x.first
	again.Release()
	testenv.Eventually(t, func() bool {
		sent := x.requests(proxy)
		return slices.Contains(sent, "getChildren2 /leases") || slices.Contains(sent, "multi")
	}, "it takes a lease or waits for one")
	if sent := x.requests(proxy); slices.Contains(sent, "multi") {
		t.Errorf("two have the one lease: %v", sent)
	}
	returnLease(t, first)
	x.receives(next)
}

func TestTurnNodeDeletedTakesNoLease(t *testing.T) {
	t.Parallel()
	x := newTurn(t, 3)
	next, path, proxy := x.heir()
	take := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldRequest})
	x.end.Release()
	x.receives(x.first)
	if err := take.Wait(x.ctx); err != nil {
		t.Fatal(err)
	}
	if err := x.direct.Delete().ForPath(x.ctx, path); err != nil { // as an operator would
		t.Fatal(err)
	}
	take.Release()
	x.receives(next)
	sent := x.requests(proxy)
	if i := slices.Index(sent, "create2"); i < 0 || !slices.Contains(sent[:i], "multi") {
		t.Errorf("it has not tried, and lined up anew: %v", sent)
	}
}

// Two believe that they have the turn. If each waited with a node among the leases, none would ever have one.
func TestTurnNodesDeletedWaitersDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	x := &turn{T: t, ctx: ctx, chroot: chroot, leases: 1, direct: newClient(t, testenv.Addr(t)+chroot)}
	held := takeLease(t, ctx, x.semaphore(x.direct))
	var waiting []<-chan *locks.Lease
	for range 3 {
		client, proxy := proxied(t, chroot)
		waiting = append(waiting, x.take(ctx, x.semaphore(client)))
		awaitLeaseWaiter(t, proxy)
		if err := x.direct.Delete().ForPath(ctx, x.line()[0]); err != nil { // as an operator would
			t.Fatal(err)
		}
	}
	for _, got := range waiting {
		if len(got) != 0 {
			t.Fatal("two have the one lease")
		}
	}
	returnLease(t, held)
	var wg sync.WaitGroup
	for _, got := range waiting {
		wg.Go(func() {
			lease := <-got
			if lease == nil {
				t.Error("no lease")
				return
			}
			if nodes, err := x.semaphore(x.direct).ParticipantNodes(ctx); err != nil || len(nodes) != 1 {
				t.Errorf("leases %v, error %v", nodes, err)
			}
			returnLease(t, lease)
		})
	}
	wg.Wait()
	awaitNothing(t, testenv.Addr(t)+chroot)
}

// A waiter lists the line and counts the leases with its create, and watches the waiter ahead of it.
func TestSemaphoreContendedSendsFourRequests(t *testing.T) {
	t.Parallel()
	x := newTurn(t, 2)
	client, proxy := proxied(x, x.chroot)
	s := x.semaphore(client)
	second, _ := x.behind(x.ctx, s)
	proxy.Faults().ResetTrace()
	third, _ := x.behind(x.ctx, s)
	sent := slices.DeleteFunc(x.requests(proxy), func(op string) bool { return op == "heartbeat" })
	if diff := cmp.Diff([]string{"create2", "getChildren2 /locks", "exists /leases", "getData"}, sent); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	x.end.Release()
	x.receives(x.first)
	x.receives(second)
	x.receives(third)
	lease := takeLease(t, x.ctx, s)
	returnLease(t, lease)
}
