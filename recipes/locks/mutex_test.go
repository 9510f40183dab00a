package locks_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/zkpath"
)

func TestMutexClientsAndGoroutinesHaveOneHolder(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	const clients, goroutines, rounds = 4, 3, 15
	var inside, entered atomic.Int32
	var lastToken atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		mu := locks.NewInterProcessMutex(newClient(t, connect), lockPath)
		for range goroutines {
			wg.Go(func() {
				for range rounds {
					hold, err := mu.Acquire(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d inside", n)
					}
					if last := lastToken.Swap(hold.Token()); last >= hold.Token() {
						t.Errorf("token %d after %d", hold.Token(), last)
					}
					entered.Add(1)
					inside.Add(-1)
					if err := hold.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if got := entered.Load(); got != clients*goroutines*rounds {
		t.Errorf("entered %d times", got)
	}
	if n := contenders(t, connect); n != 0 {
		t.Errorf("%d nodes left", n)
	}
}

func TestMutexNodesHaveNamesAndDataOfJava(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect, framework.WithDefaultData([]byte("10.0.0.1")))
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	want := regexp.MustCompile(`^/locks/orders/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$`)
	if !want.MatchString(hold.Path()) {
		t.Errorf("path %s", hold.Path())
	}
	if !zkpath.IsProtected(zkpath.Node(hold.Path())) {
		t.Errorf("%s is not protected", hold.Path())
	}
	var stat zk.Stat
	data, err := client.GetData().StoringStatIn(&stat).ForPath(ctx, hold.Path())
	if err != nil || string(data) != "10.0.0.1" || stat.EphemeralOwner != client.SessionID() {
		t.Errorf("data %q, owner %x, %v", data, stat.EphemeralOwner, err)
	}
	if stat.Czxid != hold.Token() {
		t.Errorf("token %d, czxid %d", hold.Token(), stat.Czxid)
	}
	// The line is a container: once used and empty it goes away by itself.
	release(t, hold)
	testenv.Eventually(t, func() bool {
		stat, err := client.CheckExists().ForPath(ctx, "/locks")
		return err == nil && stat == nil
	}, "containers are removed")
}

func TestMutexWithLockNodeDataHasData(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath, locks.WithLockNodeData([]byte("me"))))
	defer release(t, hold)
	if data, err := client.GetData().ForPath(ctx, hold.Path()); err != nil || string(data) != "me" {
		t.Errorf("data %q, %v", data, err)
	}
}

// In Java: TestInterProcessMutexBase.testReentrant, TestInterProcessMutexBase.testReentrant2Threads, and
// TestInterProcessSemaphoreMutex, which leaves them out.
func TestEveryLockOwnerReentersUnlessSemaphore(t *testing.T) {
	mutex := func(c *framework.Client, path string) locks.InterProcessLock {
		return locks.NewInterProcessMutex(c, path)
	}
	for name, tt := range map[string]struct {
		lock      func(c *framework.Client) locks.InterProcessLock
		reentrant bool
	}{
		"mutex":               {everyLock["mutex"], true},
		"mutex with a driver": {everyLock["mutex with a driver"], true},
		"write lock":          {everyLock["write lock"], true},
		"multi lock of mutexes": {func(c *framework.Client) locks.InterProcessLock {
			return locks.NewInterProcessMultiLock(mutex(c, "/first"), mutex(c, "/second"))
		}, true},
		"semaphore mutex":                 {everyLock["semaphore mutex"], false},
		"multi lock of a semaphore mutex": {everyLock["multi lock"], false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			connect := testenv.ConnectString(t)
			l := tt.lock(newClient(t, connect))
			me := locks.WithOwner(ctx)
			outer := acquire(t, me, l)
			inner, err := l.TryAcquire(me, 0)
			if tt.reentrant && err != nil || !tt.reentrant && !errors.Is(err, locks.ErrNotAcquired) {
				t.Fatalf("once more: %v", err)
			}
			for other, ctx := range map[string]context.Context{"another": locks.WithOwner(ctx), "none": ctx} {
				if _, err := l.TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
					t.Errorf("owner %s: %v", other, err)
				}
			}
			if tt.reentrant {
				release(t, inner)
			}
			if !l.IsAcquiredInThisProcess() || outer.Context().Err() != nil {
				t.Error("the end of the inner hold is that of the outer")
			}
			release(t, outer)
			if l.IsAcquiredInThisProcess() {
				t.Error("still held")
			}
			awaitNothing(t, connect)
		})
	}
}

// Without an owner no call re-enters, not even one of the same caller.
func TestMutexWithoutOwnerIsNotReentrant(t *testing.T) {
	ctx := testenv.Context(t)
	mu := locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), lockPath)
	hold := acquire(t, ctx, mu)
	if _, err := mu.TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	release(t, hold)
}

// In Java: TestInterProcessMutexBase.testReentrant.
func TestMutexOwnerReenters(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	connect := testenv.ConnectString(t)
	mu := locks.NewInterProcessMutex(newClient(t, connect), lockPath)
	outer := acquire(t, ctx, mu)
	middle := acquire(t, ctx, mu)
	inner := acquire(t, ctx, mu)
	if outer.Path() != inner.Path() || outer.Token() != inner.Token() {
		t.Errorf("another node: %s, %s", outer.Path(), inner.Path())
	}
	if n := contenders(t, connect); n != 1 {
		t.Errorf("%d nodes", n)
	}
	release(t, outer) // in any order
	release(t, outer) // once
	release(t, inner)
	if !mu.IsOwned(ctx) || middle.Context().Err() != nil {
		t.Error("released with a hold left")
	}
	release(t, middle)
	if mu.IsOwned(ctx) || mu.IsAcquiredInThisProcess() || contenders(t, connect) != 0 {
		t.Error("not released with the last hold")
	}
}

// In Java: TestInterProcessMutexBase.testReentrant2Threads.
func TestMutexOtherOwnerWaits(t *testing.T) {
	ctx := testenv.Context(t)
	mu := locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), lockPath)
	defer release(t, acquire(t, locks.WithOwner(ctx), mu))
	for name, other := range map[string]context.Context{"another": locks.WithOwner(ctx), "none": ctx} {
		if _, err := mu.TryAcquire(other, 0); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("owner %s: %v", name, err)
		}
	}
}

func TestMutexReleaseByOtherOwnerFails(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	mu := locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), lockPath)
	acquire(t, ctx, mu)
	acquire(t, ctx, mu)
	for name, other := range map[string]context.Context{
		"another": locks.WithOwner(ctx), "none": testenv.Context(t),
	} {
		if err := mu.Release(other); !errors.Is(err, locks.ErrNotOwner) {
			t.Errorf("owner %s: %v", name, err)
		}
	}
	for range 2 {
		if !mu.IsOwned(ctx) {
			t.Error("not owned")
		}
		if err := mu.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := mu.Release(ctx); !errors.Is(err, locks.ErrNotOwner) {
		t.Errorf("released once too often: %v", err)
	}
}

func TestTryAcquireWaitOverLeavesNothing(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	holder := locks.NewInterProcessMutex(newClient(t, connect), lockPath)
	other := newClient(t, connect)
	mu := locks.NewInterProcessMutex(other, lockPath)
	hold := acquire(t, ctx, holder)
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		if _, err := mu.TryAcquire(ctx, wait); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("after %v: %v", wait, err)
		}
	}
	if _, err := mu.TryAcquire(ctx, -time.Second); err == nil {
		t.Error("a negative wait is accepted")
	}
	awaitContenders(t, other, 1)
	testenv.Eventually(t, func() bool { return waitersOf(t, hold.Path()) == 0 }, "the watch is taken back")
	release(t, hold)
	got, err := mu.TryAcquire(ctx, 0)
	if err != nil {
		t.Fatalf("a free lock: %v", err)
	}
	release(t, got)
}

func TestAcquireCancelledLeavesNothing(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	mu := locks.NewInterProcessMutex(client, lockPath)
	hold := acquire(t, ctx, mu)
	waiting, cancel := context.WithCancel(ctx)
	done := make(chan error)
	other := locks.NewInterProcessMutex(newClient(t, connect), lockPath)
	go func() {
		_, err := other.Acquire(waiting)
		done <- err
	}()
	awaitContenders(t, client, 2)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	awaitContenders(t, client, 1)
	testenv.Eventually(t, func() bool { return waitersOf(t, hold.Path()) == 0 }, "the watch is taken back")
	if _, err := mu.Acquire(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	release(t, hold)
}

func TestHoldContextHasValuesButNotEndOfAcquire(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(testenv.Context(t), key{}, "value"))
	hold := acquire(t, ctx, locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), lockPath))
	cancel()
	if hold.Context().Err() != nil || hold.Context().Value(key{}) != "value" {
		t.Error("the context of the hold is that of Acquire")
	}
	release(t, hold)
	if cause := context.Cause(hold.Context()); !errors.Is(cause, locks.ErrReleased) {
		t.Errorf("cause %v", cause)
	}
}

func TestMutexSessionExpiredIsLostAndGrantedToNext(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	mu := locks.NewInterProcessMutex(client, lockPath)
	lost := acquire(t, ctx, mu)
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	next := acquire(t, ctx, locks.NewInterProcessMutex(newClient(t, connect), lockPath))
	defer release(t, next)
	if cause := awaitEnd(t, ctx, lost); !errors.Is(cause, locks.ErrLockLost) {
		t.Errorf("cause %v", cause)
	}
	if next.Token() <= lost.Token() {
		t.Errorf("token %d after %d", next.Token(), lost.Token())
	}
	if mu.IsAcquiredInThisProcess() || mu.IsOwned(ctx) {
		t.Error("still taken for acquired")
	}
	if _, err := mu.Acquire(ctx); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("the owner enters a lock it has lost: %v", err)
	}
	release(t, lost) // deletes nothing of anybody
	awaitContenders(t, client, 1)
}

func TestParticipantNodesAreInOrder(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath)
	if nodes, err := mu.ParticipantNodes(ctx); err != nil || len(nodes) != 0 {
		t.Fatalf("before anybody: %v, %v", nodes, err)
	}
	first := acquire(t, ctx, mu)
	turns := make(chan string, 3)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			hold, err := mu.Acquire(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			turns <- hold.Path()
			if err := hold.Release(ctx); err != nil {
				t.Error(err)
			}
		})
		awaitContenders(t, client, i+2)
	}
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil || len(nodes) != 4 || nodes[0] != first.Path() {
		t.Fatalf("%v, %v", nodes, err)
	}
	release(t, first)
	wg.Wait()
	for _, node := range nodes[1:] {
		if got := <-turns; got != node {
			t.Errorf("turn of %s, want %s", got, node)
		}
	}
}

// In Java: TestInterProcessMutexBase.testWithNamespace.
func TestMutexPathHasNoNamespace(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client.UsingNamespace("a/b"), lockPath))
	defer release(t, hold)
	if !strings.HasPrefix(hold.Path(), lockPath+"/") {
		t.Errorf("path %s", hold.Path())
	}
	if stat, err := client.CheckExists().ForPath(ctx, "/a/b"+hold.Path()); err != nil || stat == nil {
		t.Errorf("no node: %v", err)
	}
}

func TestAcquireInvalidPathFails(t *testing.T) {
	mu := locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), "no/slash")
	if _, err := mu.Acquire(testenv.Context(t)); !errors.Is(err, zk.ErrInvalidPath) {
		t.Errorf("got %v", err)
	}
}

func TestMutexClientClosedEndsWaitAndHold(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	holder := newClient(t, connect)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(holder, lockPath))
	waiter := newClient(t, connect)
	done := make(chan error)
	go func() {
		_, err := locks.NewInterProcessMutex(waiter, lockPath).Acquire(ctx)
		done <- err
	}()
	awaitContenders(t, holder, 2)
	if err := waiter.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, framework.ErrClosed) {
		t.Errorf("wait: %v", err)
	}
	if err := holder.Close(); err != nil {
		t.Error(err)
	}
	if cause := awaitEnd(t, ctx, hold); !errors.Is(cause, locks.ErrLockLost) {
		t.Errorf("hold: %v", cause)
	}
}
