package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

const semaphorePath = "/semaphore"

func takeLease(
	t *testing.T, ctx context.Context, s *locks.InterProcessSemaphoreV2, //nolint:revive // t first
) *locks.Lease {
	t.Helper()
	lease, err := s.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// awaitLeaseWaiter waits until a client behind a proxy watches the leases.
func awaitLeaseWaiter(tb testing.TB, proxy *curatortest.Proxy) {
	tb.Helper()
	testenv.Eventually(tb, func() bool { return hasWatchedLeases(proxy) }, "a client waits for a lease")
}

// hasWatchedLeases reports whether a client behind a proxy waits for a lease. Only a waiter lists them, and the
// server does not list such watches.
func hasWatchedLeases(proxy *curatortest.Proxy) bool {
	return slices.ContainsFunc(proxy.Faults().Trace(), func(e curatortest.TraceEntry) bool {
		return e.Reply && e.Op == "getChildren2" && e.Code == 0 && strings.HasSuffix(e.Path, semaphorePath+"/leases")
	})
}

func returnLease(t *testing.T, lease *locks.Lease) {
	t.Helper()
	if err := lease.Return(context.Background()); err != nil {
		t.Error(err)
	}
}

// In Java: TestInterProcessSemaphore.testThreads.
func TestSemaphoreLeasesNeverExceedLimit(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	const clients, goroutines, rounds, most = 4, 2, 10, 3
	var held, taken, peak atomic.Int32
	var wg sync.WaitGroup
	for range clients {
		s := locks.NewInterProcessSemaphoreV2(newClient(t, connect), semaphorePath, most)
		for range goroutines {
			wg.Go(func() {
				for range rounds {
					lease, err := s.Acquire(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					n := held.Add(1)
					if n > most {
						t.Errorf("%d leases of %d", n, most)
					}
					for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
						continue
					}
					taken.Add(1)
					held.Add(-1)
					returnLease(t, lease)
				}
			})
		}
	}
	wg.Wait()
	if n := taken.Load(); n != clients*goroutines*rounds {
		t.Errorf("%d leases taken", n)
	}
	awaitNothing(t, connect)
}

func TestLeaseNodesHaveNamesOfJava(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 2, locks.WithLeaseData([]byte("me")))
	lease := takeLease(t, ctx, s)
	if want := regexp.MustCompile(`^/semaphore/leases/_c_[0-9a-f-]{36}-lease-\d{10}$`); !want.MatchString(lease.Path()) {
		t.Errorf("path %s", lease.Path())
	}
	if data, err := lease.Data(ctx); err != nil || string(data) != "me" {
		t.Errorf("data %q, error %v", data, err)
	}
	nodes, err := s.ParticipantNodes(ctx)
	if err != nil || len(nodes) != 1 || nodes[0] != lease.Path() ||
		lease.Path() != semaphorePath+"/leases/"+lease.NodeName() {
		t.Errorf("participants %v, error %v", nodes, err)
	}
	returnLease(t, lease)
	returnLease(t, lease)
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locks.ErrReleased) {
		t.Errorf("cause %v", cause)
	}
	awaitNothing(t, connect)
}

// In Java: TestInterProcessSemaphore.testSimple, and CURATOR-315: what a failure leaves.
func TestAcquireNTakesAllOrNone(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	s := locks.NewInterProcessSemaphoreV2(newClient(t, connect), semaphorePath, 4)
	three, err := s.AcquireN(ctx, 3)
	if err != nil || len(three) != 3 {
		t.Fatalf("%d leases, error %v", len(three), err)
	}
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		if got, err := s.TryAcquireN(ctx, 2, wait); !errors.Is(err, locks.ErrNotAcquired) || got != nil {
			t.Errorf("two of one: %v, error %v", got, err)
		}
	}
	if nodes, err := s.ParticipantNodes(ctx); err != nil || len(nodes) != 3 {
		t.Errorf("leases %v, error %v", nodes, err)
	}
	got := make(chan []*locks.Lease, 1)
	go func() {
		two, err := s.AcquireN(ctx, 2)
		if err != nil {
			t.Error(err)
		}
		got <- two
	}()
	returnLease(t, three[0])
	two := <-got
	if err := s.ReturnAll(ctx, append(two, three[1:]...)...); err != nil {
		t.Error(err)
	}
	for _, n := range []int{0, -1, 5} {
		if _, err := s.AcquireN(ctx, n); err == nil {
			t.Errorf("%d leases of 4: no error", n)
		}
	}
	for _, most := range []int{0, -1} {
		if _, err := locks.NewInterProcessSemaphoreV2(newClient(t, connect), semaphorePath, most).Acquire(ctx); err == nil {
			t.Errorf("a semaphore of %d: no error", most)
		}
	}
	awaitNothing(t, connect)
}

// sharedCount is a number of leases that a test changes.
type sharedCount struct {
	mu      sync.Mutex
	n       int
	changed chan struct{}
}

func (c *sharedCount) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *sharedCount) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *sharedCount) set(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = n
	close(c.changed)
	c.changed = make(chan struct{})
}

// In Java: TestInterProcessSemaphore.testThreadedLeaseIncrease (CURATOR-75).
func TestLeaseCountChangeIsFollowed(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	count := &sharedCount{n: 1, changed: make(chan struct{})}
	s := locks.NewInterProcessSemaphoreV2(newClient(t, connect), semaphorePath, 0, locks.WithLeaseCount(count))
	first := takeLease(t, ctx, s)
	got := make(chan *locks.Lease, 1)
	go func() {
		lease, err := s.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	awaitLeaseWaiter(t, proxy)
	count.set(2)
	second := <-got
	count.set(1) // takes none away
	if first.Context().Err() != nil || second.Context().Err() != nil {
		t.Error("a lease was taken away")
	}
	returnLease(t, first)
	if _, err := s.TryAcquire(ctx, 50*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a second lease of one: %v", err)
	}
	returnLease(t, second)
	returnLease(t, takeLease(t, ctx, s))
	awaitNothing(t, testenv.Addr(t)+chroot)
}

// CURATOR-335: the connection is cut before and after each of the requests in turn.
func TestSemaphoreLostRepliesLeaveNoLease(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
		ctx := testenv.Context(t)
		chroot := testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		client := newClient(t, connect)
		if err := client.BlockUntilConnected(ctx); err != nil {
			t.Fatal(err)
		}
		injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
		s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 3)
		leases, err := s.AcquireN(ctx, 2)
		if err != nil {
			t.Errorf("request %d: %v", k, err)
		}
		if err := s.ReturnAll(ctx, leases...); err != nil {
			t.Errorf("request %d: return: %v", k, err)
		}
		awaitNothing(t, testenv.Addr(t)+chroot)
		return injection.Hits() > 0
	})
}

// In Java: TestInterProcessSemaphore.testAcquireAfterLostServer (CURATOR-335): the server is lost when a client has a
// lease and does not know yet. All come to their turn, whether the session survives or not.
func TestSemaphoreOutageBeforeGrantIsSurvived(t *testing.T) {
	for _, what := range []string{"connection", "session"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			chroot := testenv.Chroot(t)
			proxy, connect := newProxy(t, chroot)
			client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second))
			if err := client.BlockUntilConnected(ctx); err != nil {
				t.Fatal(err)
			}
			taking := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldReply})
			var inside, entered atomic.Int32
			var wg sync.WaitGroup
			const many = 8
			for range many {
				wg.Go(func() {
					lease, err := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 1).Acquire(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d leases of one", n)
					}
					entered.Add(1)
					inside.Add(-1)
					returnLease(t, lease)
				})
			}
			if err := taking.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			if what == "session" {
				if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
					t.Fatal(err)
				}
			}
			restore := proxy.Faults().RefuseConnects()
			proxy.Faults().CutAll()
			restore()
			wg.Wait()
			if n := entered.Load(); n != many {
				t.Errorf("%d of %d had a lease", n, many)
			}
			awaitNothing(t, testenv.Addr(t)+chroot)
		})
	}
}

// In Java: TestInterProcessSemaphore.testRelease1AtATime, TestInterProcessSemaphore.testReleaseInChunks,
// TestInterProcessSemaphore.testSimple2, TestInterProcessSemaphore.testGetParticipantNodes.
func TestSemaphoreGrantsAsManyLeasesAsReturned(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	connect := testenv.Addr(t) + chroot
	const most, all = 3, 12
	granted := make(chan *locks.Lease, all)
	var wg sync.WaitGroup
	defer wg.Wait()
	clients := []*framework.Client{newClient(t, connect), newClient(t, connect)}
	for i := range all {
		wg.Go(func() {
			lease, err := locks.NewInterProcessSemaphoreV2(clients[i%len(clients)], semaphorePath, most).Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		})
	}
	var held []*locks.Lease
	take := func(n int) {
		t.Helper()
		for range n {
			lease := <-granted
			if lease == nil {
				t.FailNow()
			}
			held = append(held, lease)
		}
	}
	take(most)
	raw := testenv.Raw(t)
	observer := locks.NewInterProcessSemaphoreV2(clients[0], semaphorePath, most)
	chunk := 1
	for waiting := all - most; waiting > 0; chunk = chunk%most + 1 {
		testenv.Eventually(t, func() bool {
			turns := nodesBelow(t, raw, chroot+semaphorePath+"/locks")
			nodes, err := observer.ParticipantNodes(ctx)
			return len(turns) == waiting && err == nil && len(nodes) == most
		}, "the others stand in line")
		if n := len(granted); n != 0 {
			t.Errorf("%d leases of %d", most+n, most)
		}
		n := min(chunk, waiting)
		if err := observer.ReturnAll(ctx, held[:n]...); err != nil {
			t.Error(err)
		}
		held = held[n:]
		take(n)
		waiting -= n
	}
	if nodes, err := observer.ParticipantNodes(ctx); err != nil || len(nodes) != most {
		t.Errorf("%v, error %v", nodes, err)
	}
	if err := observer.ReturnAll(ctx, held...); err != nil {
		t.Error(err)
	}
	awaitNothing(t, connect)
}

// In Java: TestInterProcessSemaphore.testMaxPerSession.
func TestAcquireNLeasesNeverExceedLimit(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	const clients, rounds, most = 4, 8, 5
	var held atomic.Int32
	var wg sync.WaitGroup
	for i := range clients {
		s := locks.NewInterProcessSemaphoreV2(newClient(t, connect), semaphorePath, most)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for range rounds {
				n := 1 + random.IntN(most)
				leases, err := s.AcquireN(ctx, n)
				if err != nil || len(leases) != n {
					t.Errorf("%d leases of %d, error %v", len(leases), n, err)
					return
				}
				if all := held.Add(int32(n)); all > most {
					t.Errorf("%d leases of %d", all, most)
				}
				held.Add(-int32(n))
				if err := s.ReturnAll(ctx, leases...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	awaitNothing(t, connect)
}

// In Java: TestInterProcessSemaphore.testInterruptAcquire (CURATOR-462).
func TestSemaphoreAcquireCancelledLeavesNoLease(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 1)
	first := takeLease(t, ctx, s)
	later := func(ctx context.Context) <-chan error {
		failed := make(chan error, 1)
		go func() {
			_, err := s.Acquire(ctx)
			failed <- err
		}()
		return failed
	}
	raw := testenv.Raw(t)
	await := func(turns, leases int) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			return len(nodesBelow(t, raw, chroot+semaphorePath+"/locks")) == turns &&
				len(nodesBelow(t, raw, chroot+semaphorePath+"/leases")) == leases
		}, fmt.Sprintf("%d turns, %d leases", turns, leases))
	}
	await(0, 1)
	forLease, cancelLease := context.WithCancel(ctx)
	lease := later(forLease)
	await(1, 1)
	forTurn, cancelTurn := context.WithCancel(ctx)
	turn := later(forTurn)
	await(2, 1)
	cancelTurn()
	if err := <-turn; !errors.Is(err, context.Canceled) {
		t.Errorf("for its turn: %v", err)
	}
	await(1, 1)
	cancelLease()
	if err := <-lease; !errors.Is(err, context.Canceled) {
		t.Errorf("for a lease: %v", err)
	}
	await(0, 1)

	returnLease(t, first)
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Count: 1, Action: curatortest.HoldReply})
	forAnswer, cancelAnswer := context.WithCancel(ctx)
	answer := later(forAnswer)
	if err := held.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	cancelAnswer()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("for an answer: %v", err)
	}
	held.Release()
	await(0, 0)
	returnLease(t, takeLease(t, ctx, s))
	awaitNothing(t, testenv.Addr(t)+chroot)
}

// CURATOR-315, CURATOR-335: the leases are not shown from the k-th list on.
func TestSemaphoreListRefusedLeavesNothing(t *testing.T) {
	testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
		ctx := testenv.Context(t)
		chroot := testenv.Chroot(t)
		first := takeLease(t, ctx, locks.NewInterProcessSemaphoreV2(newClient(t, testenv.Addr(t)+chroot), semaphorePath, 3))
		proxy, connect := newProxy(t, chroot)
		client := newClient(t, connect)
		injection := proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Path: "/**/leases", Skip: k, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
			MayMiss: k > 0,
		})
		s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 3)
		var leases []*locks.Lease
		done := make(chan error, 1)
		go func() {
			var err error
			leases, err = s.AcquireN(ctx, 3)
			done <- err
		}()
		if k > 0 {
			awaitLeaseWaiter(t, proxy)
			returnLease(t, first)
		}
		err := <-done
		hit = injection.Hits() > 0
		if hit != errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("list %d: %v", k, err)
		}
		if err := s.ReturnAll(ctx, append(leases, first)...); err != nil {
			t.Errorf("list %d: return: %v", k, err)
		}
		awaitNothing(t, testenv.Addr(t)+chroot)
		return hit
	})
}

func TestLeaseSessionExpiredIsLost(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second))
	s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 2)
	leases, err := s.AcquireN(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	for _, l := range leases {
		<-l.Context().Done()
		if cause := context.Cause(l.Context()); !errors.Is(cause, locks.ErrLockLost) {
			t.Errorf("cause %v", cause)
		}
	}
	again := takeLease(t, ctx, s)
	if err := s.ReturnAll(ctx, append(leases, again, nil)...); err != nil {
		t.Error(err)
	}
	awaitNothing(t, connect)
}

// A program knows the path that it has given, not those of the nodes below it.
func TestSemaphoreErrorHasUserPath(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	semaphore := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 2)
	mu := locks.NewInterProcessSemaphoreMutex(client, lockPath)
	takeLease(t, ctx, semaphore)
	acquire(t, ctx, mu)
	for _, tt := range []struct {
		try  func() error
		want string
	}{
		{func() error { _, err := semaphore.TryAcquireN(ctx, 2, 0); return err }, "locks: acquire /semaphore: not acquired"},
		{func() error { _, err := semaphore.AcquireN(ctx, 3); return err }, "locks: acquire /semaphore: 3 leases"},
		{func() error { _, err := mu.TryAcquire(ctx, 0); return err }, "locks: acquire /locks/orders: not acquired"},
		{
			func() error { return locks.NewInterProcessSemaphoreMutex(client, "/free").Release(ctx) },
			"locks: release /free: not held",
		},
	} {
		if err := tt.try(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
