package locks_test

import (
	"context"
	"errors"
	"path"
	"runtime"
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
	"github.com/gocurator/curator/retry"
)

// everyLock are the locks that exclude everybody else, by name.
var everyLock = map[string]func(*framework.Client) locks.InterProcessLock{
	"mutex": func(c *framework.Client) locks.InterProcessLock { return locks.NewInterProcessMutex(c, lockPath) },
	"mutex with a driver": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessMutex(c, lockPath, locks.WithDriver(locks.StandardDriver{}))
	},
	"write lock": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessReadWriteLock(c, lockPath).WriteLock()
	},
	"semaphore mutex": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessSemaphoreMutex(c, lockPath)
	},
	"multi lock": func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, lockPath),
			locks.NewInterProcessSemaphoreMutex(c, "/locks/other"))
	},
}

// forEveryLock runs a test for each of the locks. In Java: TestInterProcessMutexBase and its sub-classes.
func forEveryLock(t *testing.T, test func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock)) {
	t.Helper()
	for name, lock := range everyLock {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, lock)
		})
	}
}

// nodesBelow returns the paths of the ephemeral nodes at and below a path: contenders and leases.
func nodesBelow(tb testing.TB, raw *zk.Conn, p string) (nodes []string) {
	tb.Helper()
	children, stat, err := raw.Children(p)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, child := range children {
		nodes = append(nodes, nodesBelow(tb, raw, path.Join(p, child))...)
	}
	if stat.EphemeralOwner != 0 {
		nodes = append(nodes, p)
	}
	return nodes
}

// awaitNothing waits until no holder, waiter or watch is left below the chroot of a connect string.
func awaitNothing(tb testing.TB, connect string) {
	tb.Helper()
	_, chroot, _ := strings.Cut(connect, "/")
	raw := testenv.Raw(tb)
	testenv.Eventually(tb, func() bool { return len(nodesBelow(tb, raw, "/"+chroot)) == 0 }, "no node is left")
	testenv.Eventually(tb, func() bool { return !strings.Contains(watches(tb), "/"+chroot+"/") }, "no watch is left")
}

// acquireLater acquires on a goroutine of its own; what it gets is nil if it fails, and so does the test.
func acquireLater(
	tb testing.TB, ctx context.Context, l locks.InterProcessLock, //nolint:revive // tb first
) <-chan *locks.Hold {
	tb.Helper()
	got := make(chan *locks.Hold, 1)
	go func() {
		hold, err := l.Acquire(ctx)
		if err != nil {
			tb.Error(err)
		}
		got <- hold
	}()
	return got
}

// receive takes a hold from acquireLater.
func receive(tb testing.TB, got <-chan *locks.Hold) *locks.Hold {
	tb.Helper()
	select {
	case hold := <-got:
		if hold == nil {
			tb.FailNow()
		}
		return hold
	case <-testenv.Context(tb).Done():
		tb.Fatal("not acquired in time")
		return nil
	}
}

// acquireBehind is acquireLater that returns when it stands in line.
func acquireBehind(
	tb testing.TB, ctx context.Context, l locks.InterProcessLock, connect string, //nolint:revive // tb first
) <-chan *locks.Hold {
	tb.Helper()
	_, chroot, _ := strings.Cut(connect, "/")
	raw := testenv.Raw(tb)
	before := nodesBelow(tb, raw, "/"+chroot)
	got := acquireLater(tb, ctx, l)
	testenv.Eventually(tb, func() bool {
		return slices.ContainsFunc(nodesBelow(tb, raw, "/"+chroot), func(node string) bool {
			return !slices.Contains(before, node)
		})
	}, "one more stands in line")
	return got
}

// In Java: TestInterProcessMutexBase.test2Clients, TestInterProcessMutexBase.testReentrantSingleLock.
func TestEveryLockHasOneHolder(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		connect := testenv.ConnectString(t)
		const clients, goroutines, rounds = 3, 2, 6
		var inside, entered atomic.Int32
		var lastToken atomic.Int64
		var wg sync.WaitGroup
		for range clients {
			l := lock(newClient(t, connect))
			for range goroutines {
				wg.Go(func() {
					for range rounds {
						err := locks.Do(ctx, l, func(context.Context) error {
							if n := inside.Add(1); n != 1 {
								t.Errorf("%d inside", n)
							}
							if !l.IsAcquiredInThisProcess() {
								t.Error("not acquired")
							}
							entered.Add(1)
							inside.Add(-1)
							return nil
						})
						if err != nil {
							t.Error(err)
							return
						}
						hold, err := l.TryAcquire(ctx, time.Minute)
						if err != nil {
							t.Error(err)
							return
						}
						if last := lastToken.Swap(hold.Token()); last >= hold.Token() {
							t.Errorf("token %d after %d", hold.Token(), last)
						}
						release(t, hold)
					}
				})
			}
		}
		wg.Wait()
		if got := entered.Load(); got != clients*goroutines*rounds {
			t.Errorf("entered %d times", got)
		}
		awaitNothing(t, connect)
	})
}

func TestEveryLockNotAcquiredLeavesNothing(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		connect := testenv.ConnectString(t)
		holder, other := lock(newClient(t, connect)), lock(newClient(t, connect))
		hold := acquire(t, ctx, holder)
		for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
			if _, err := other.TryAcquire(ctx, wait); !errors.Is(err, locks.ErrNotAcquired) {
				t.Errorf("after %v: %v", wait, err)
			}
		}
		if _, err := other.TryAcquire(ctx, -1); err == nil || errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("a negative wait: %v", err)
		}
		waiting, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := other.Acquire(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that ends: %v", err)
		}
		if other.IsAcquiredInThisProcess() || !holder.IsAcquiredInThisProcess() {
			t.Error("the holder has changed")
		}
		release(t, hold)
		release(t, hold) // once more does nothing
		hold, err := other.TryAcquire(ctx, 10*time.Second)
		if err != nil {
			t.Fatalf("a free lock: %v", err)
		}
		release(t, hold)
		awaitNothing(t, connect)
	})
}

// In Java: TestInterProcessMutexBase.testWithNamespace.
func TestEveryLockInNamespaceExcludesSameNamespaceOnly(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		connect := testenv.ConnectString(t)
		client := newClient(t, connect, framework.WithNamespace("ns"))
		hold := acquire(t, ctx, lock(client))
		same, outside := lock(newClient(t, connect).UsingNamespace("ns")), lock(newClient(t, connect))
		if _, err := same.TryAcquire(ctx, 0); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("in the same namespace: %v", err)
		}
		release(t, acquire(t, ctx, outside)) // another lock
		if stat, err := newClient(t, connect).CheckExists().ForPath(ctx, "/ns"+hold.Path()); err != nil || stat == nil {
			t.Errorf("no node %s in the namespace: %v", hold.Path(), err)
		}
		release(t, hold)
		release(t, acquire(t, ctx, same))
		awaitNothing(t, connect)
	})
}

// In Java: TestInterProcessMutexBase.testContainerCleanup.
func TestEveryLockReleasedLeavesNoContainer(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		client := newClient(t, testenv.ConnectString(t))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := locks.Do(ctx, lock(client), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		testenv.Eventually(t, func() bool {
			stat, err := client.CheckExists().ForPath(ctx, "/locks")
			return err == nil && stat == nil
		}, "containers are removed")
		release(t, acquire(t, ctx, lock(client))) // and made again
	})
}

// In Java: TestInterProcessMutexBase.testKilledSession, where holder and waiter have the same client too: the nodes of
// both go with the session. TestInterProcessSemaphore.testClientClose.
func TestEveryLockSessionEndedIsLostAndGrantedToNext(t *testing.T) {
	expire := func(client *framework.Client) error { return testenv.Server(t).ExpireSession(client.SessionID()) }
	for name, tt := range map[string]struct {
		end  func(holder *framework.Client) error
		same bool // as the holder's is the client of the waiter
	}{
		"expired":                            {end: expire},
		"expired, the waiter's session, too": {end: expire, same: true},
		"client closed":                      {end: (*framework.Client).Close},
	} {
		t.Run(name, func(t *testing.T) {
			forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
				t.Helper()
				ctx := testenv.Context(t)
				connect := testenv.ConnectString(t)
				holder := newClient(t, connect)
				waiter := holder
				if !tt.same {
					waiter = newClient(t, connect)
				}
				hold := acquire(t, ctx, lock(holder))
				next := acquireBehind(t, ctx, lock(waiter), connect)
				if err := tt.end(holder); err != nil {
					t.Fatal(err)
				}
				if cause := awaitEnd(t, ctx, hold); !errors.Is(cause, locks.ErrLockLost) {
					t.Errorf("cause %v", cause)
				}
				got := receive(t, next)
				if got.Token() <= hold.Token() {
					t.Errorf("token %d after %d", got.Token(), hold.Token())
				}
				if err := hold.Release(ctx); err != nil && !errors.Is(err, framework.ErrClosed) { // of what is lost
					t.Error(err)
				}
				if err := got.Context().Err(); err != nil {
					t.Errorf("the next one has not got it, or the release of the first has taken it: %v", err)
				}
				release(t, got)
				awaitNothing(t, connect)
			})
		})
	}
}

// In Java: TestInterProcessMutexBase.testWaitingProcessKilledServer.
func TestEveryLockServerRestartKeepsHoldersAndWaiters(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		server := testenv.NewServer(t)
		long := framework.WithSessionTimeout(30 * time.Second)
		hold := acquire(t, ctx, lock(newClient(t, server.ConnectString(), long)))
		waiting, next := make(chan struct{}), make(chan *locks.Hold, 1)
		// The server may be killed before the create of the waiter is answered: it has to outlast a slow start.
		patient := framework.WithRetryPolicy(retry.Forever(100 * time.Millisecond))
		other := newClient(t, server.ConnectString(), long, patient)
		if err := other.BlockUntilConnected(ctx); err != nil {
			t.Fatal(err)
		}
		go func() {
			close(waiting)
			got, err := lock(other).Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			next <- got
		}()
		<-waiting
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-next:
			t.Fatalf("two hold it: %v", got)
		default:
		}
		if hold.Context().Err() != nil {
			t.Error("the hold has not survived")
		}
		release(t, hold)
		if got := <-next; got != nil {
			release(t, got)
		}
	})
}

// TestEveryLockLostRepliesLeaveNothing cuts the connection before and after each of the requests in turn. Without
// retries, acquire and release may fail.
func TestEveryLockLostRepliesLeaveNothing(t *testing.T) {
	for name, policy := range map[string]retry.Policy{
		"with retries": retry.NTimes(5, 5*time.Millisecond), "without": retry.NTimes(0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
				t.Helper()
				testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
					ctx := testenv.Context(t)
					chroot := testenv.Chroot(t)
					proxy, connect := newProxy(t, chroot)
					client := newClient(t, connect, framework.WithRetryPolicy(policy))
					if err := client.BlockUntilConnected(ctx); err != nil {
						t.Fatal(err)
					}
					injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
					hold, err := lock(client).Acquire(ctx)
					if err == nil {
						err = hold.Release(ctx)
					}
					if err != nil && (name != "without" || !errors.Is(err, framework.ErrConnectionLoss)) {
						t.Errorf("request %d: %v", k, err)
					}
					awaitNothing(t, testenv.Addr(t)+chroot)
					release(t, acquire(t, ctx, lock(newClient(t, testenv.Addr(t)+chroot))))
					return injection.Hits() > 0
				})
			})
		})
	}
}

func TestEveryLockClientClosedFails(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		connect := testenv.ConnectString(t)
		hold := acquire(t, ctx, lock(newClient(t, connect)))
		client := newClient(t, connect)
		failed := make(chan error, 1)
		go func() {
			_, err := lock(client).Acquire(ctx)
			failed <- err
		}()
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !errors.Is(err, framework.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if _, err := lock(client).Acquire(ctx); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("of a closed client: %v", err)
		}
		release(t, hold)
		awaitNothing(t, connect)
	})
}

// Java counts the time only while others are ahead.
func TestEveryLockTryAcquireWithoutConnectionEndsInTime(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		chroot := testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		restore := proxy.Faults().RefuseConnects()
		l := lock(newClient(t, connect, framework.WithRetryPolicy(retry.Forever(10*time.Millisecond))))
		if _, err := l.TryAcquire(ctx, 50*time.Millisecond); !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("got %v", err)
		}
		restore()
		release(t, acquire(t, ctx, l))
		awaitNothing(t, testenv.Addr(t)+chroot)
	})
}

// The connection goes between the create of its node and the list.
func TestEveryLockTryAcquireZeroDoesNotWaitForConnection(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		chroot := testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		client := newClient(t, connect, framework.WithConnectionTimeout(500*time.Millisecond),
			framework.WithRetryPolicy(retry.NTimes(1, 10*time.Millisecond)))
		if err := client.BlockUntilConnected(ctx); err != nil { // which takes longer on a busy machine
			t.Fatal(err)
		}
		release(t, acquire(t, ctx, lock(client)))
		proxy.Faults().ResetTrace()
		list := proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, Count: 1, Action: curatortest.HoldRequest,
		})
		failed := make(chan error, 1)
		go func() {
			_, err := lock(client).TryAcquire(ctx, 0)
			failed <- err
		}()
		if err := list.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, func() bool { return slices.Contains(passed(proxy, true), "create2") }, "it knows its node")
		restore := proxy.Faults().RefuseConnects()
		proxy.Faults().CutAll()
		if err := <-failed; !errors.Is(err, framework.ErrConnectionLoss) {
			t.Errorf("got %v", err)
		}
		restore()
		awaitNothing(t, testenv.Addr(t)+chroot)
	})
}

func TestEveryLockInvalidPathFails(t *testing.T) {
	client := newClient(t, testenv.ConnectString(t))
	ctx := testenv.Context(t)
	for name, l := range map[string]locks.InterProcessLock{
		"mutex":           locks.NewInterProcessMutex(client, "no/slash"),
		"read lock":       locks.NewInterProcessReadWriteLock(client, "//").ReadLock(),
		"semaphore mutex": locks.NewInterProcessSemaphoreMutex(client, ""),
		"multi lock":      locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(client, "/a/")),
		"no locks":        locks.NewInterProcessMultiLock(),
	} {
		if _, err := l.Acquire(ctx); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The session and the lock outlive a hold, and keep nothing of it.
func TestEveryLockReleasedKeepsNoHold(t *testing.T) {
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		client := newClient(t, testenv.ConnectString(t))
		l := lock(client)
		collected := make(chan struct{})
		func() {
			luggage := new([1 << 10]byte)
			runtime.AddCleanup(luggage, func(c chan struct{}) { close(c) }, collected)
			hold := acquire(t, locks.WithOwner(context.WithValue(ctx, luggageKey{}, luggage)), l)
			release(t, hold)
		}()
		release(t, acquire(t, ctx, l)) // what the client did last may be there still
		testenv.Eventually(t, func() bool {
			runtime.GC()
			select {
			case <-collected:
				return true
			default:
				return false
			}
		}, "the values of the context are garbage")
		if l.IsAcquiredInThisProcess() {
			t.Error("acquired")
		}
	})
}

type luggageKey struct{}
