package locks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

func TestAcquireNLimitFallsLetsOthersPass(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	count := &sharedCount{n: 3, changed: make(chan struct{})}
	s := locks.NewInterProcessSemaphoreV2(newClient(t, connect), semaphorePath, 0, locks.WithLeaseCount(count))
	first := takeLease(t, ctx, s)
	type grant struct {
		leases []*locks.Lease
		err    error
	}
	all := make(chan grant, 1)
	go func() {
		leases, err := s.AcquireN(ctx, 3)
		all <- grant{leases, err}
	}()
	awaitLeaseWaiter(t, proxy)
	next := make(chan *locks.Lease, 1)
	go func() {
		lease, err := s.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		next <- lease
	}()
	raw := testenv.Raw(t)
	turns := func() int { return len(nodesBelow(t, raw, chroot+semaphorePath+"/locks")) }
	testenv.Eventually(t, func() bool { return turns() == 2 }, "the next stands behind it")
	count.set(2)
	second := <-next
	if second == nil {
		t.FailNow()
	}
	testenv.Eventually(t, func() bool { return turns() == 0 }, "it has no turn")
	if _, err := s.TryAcquireN(ctx, 3, 0); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("more than the limit, without a wait: %v", err)
	}
	proxy.Faults().ResetTrace()
	count.set(3)
	awaitLeaseWaiter(t, proxy)
	if len(all) != 0 {
		t.Error("three leases beside two")
	}
	returnLease(t, first)
	returnLease(t, second)
	got := <-all
	if got.err != nil || len(got.leases) != 3 {
		t.Errorf("%d leases, error %v", len(got.leases), got.err)
	}
	if err := s.ReturnAll(ctx, got.leases...); err != nil {
		t.Error(err)
	}
	awaitNothing(t, testenv.Addr(t)+chroot)
}

func TestAcquireNBeyondLimitEndsWithContextOrClient(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	count := &sharedCount{n: 1, changed: make(chan struct{})}
	s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 0, locks.WithLeaseCount(count))
	waiting, cancel := context.WithCancel(ctx)
	for _, end := range []struct {
		how  func()
		want error
	}{
		{cancel, context.Canceled},
		{func() { _ = client.Close() }, framework.ErrClosed},
	} {
		failed := make(chan error, 1)
		go func() {
			_, err := s.AcquireN(waiting, 2)
			failed <- err
		}()
		end.how()
		if err := <-failed; !errors.Is(err, end.want) {
			t.Errorf("got %v, not %v", err, end.want)
		}
		waiting = ctx
	}
	awaitNothing(t, connect)
}

// hastyCount is a number of leases that becomes next right after it was read, once when returns true.
type hastyCount struct {
	sharedCount
	next int
	when func() bool
}

func (c *hastyCount) Count() int {
	n := c.sharedCount.Count()
	if n != c.next && c.when() {
		c.set(c.next)
	}
	return n
}

// A change between the look at the number and the wait for a change must not be missed.
func TestSemaphoreLimitRaisedAfterReadWakesWaiter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		wanted int
		when   func(proxy *curatortest.Proxy) bool
		lists  bool // the leases
	}{
		{"outside the line", 2, func(*curatortest.Proxy) bool { return true }, false},
		{"with the turn", 1, hasWatchedLeases, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := testenv.Context(t)
			chroot := testenv.Chroot(t)
			client, proxy := proxied(t, chroot)
			other := newClient(t, testenv.Addr(t)+chroot)
			count := &hastyCount{next: 3, when: func() bool { return tt.when(proxy) }}
			count.n, count.changed = 1, make(chan struct{})
			held := takeLease(t, ctx, locks.NewInterProcessSemaphoreV2(other, semaphorePath, 3))
			s := locks.NewInterProcessSemaphoreV2(client, semaphorePath, 0, locks.WithLeaseCount(count))
			leases, err := s.AcquireN(ctx, tt.wanted)
			if err != nil {
				t.Fatal(err)
			}
			if lists := hasWatchedLeases(proxy); lists != tt.lists {
				t.Errorf("it lists the leases: %t", lists)
			}
			if err := s.ReturnAll(ctx, append(leases, held)...); err != nil {
				t.Error(err)
			}
		})
	}
}
