package locks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/chaos"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// forEveryLine is forEveryLock with those whose lines are of another kind.
func forEveryLine(t *testing.T, test func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock)) {
	t.Helper()
	for _, name := range []string{"mutex", "semaphore mutex"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, everyLock[name])
		})
	}
}

// In Java: TestLockInternals.testNodeDeletedCleanlyWithFaults, and CURATOR-335 for semaphores: the line is not shown,
// from its k-th list on.
func TestMutexListRefusedLeavesNothing(t *testing.T) {
	forEveryLine(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
			return lostList(t, lock, curatortest.Rule{Skip: k, Err: zk.ErrNoAuth, MayMiss: k > 0}, zk.ErrNoAuth)
		})
	})
}

// As if the node of the lock had been deleted meanwhile: a waiter queues again.
func TestMutexListWithoutNodeIsAcquired(t *testing.T) {
	forEveryLine(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
			return lostList(t, lock, curatortest.Rule{Skip: k, Count: 2, Err: zk.ErrNoNode, MayMiss: k > 0}, nil)
		})
	})
}

// lostList acquires while lists are answered with the error of the rule. want is what acquire may fail with.
func lostList(
	t *testing.T, lock func(*framework.Client) locks.InterProcessLock, rule curatortest.Rule, want error,
) (hit bool) {
	t.Helper()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	rule.Ops, rule.Action = []string{"getChildren2"}, curatortest.ReplyError
	injection := proxy.Faults().Add(rule)
	l := lock(client)
	hold, err := l.Acquire(ctx)
	switch {
	case err == nil:
		release(t, hold)
	case want == nil || !errors.Is(err, want):
		t.Errorf("list %d: %v", rule.Skip, err)
	}
	if l.IsAcquiredInThisProcess() {
		t.Errorf("list %d: it is held", rule.Skip)
	}
	awaitNothing(t, testenv.Addr(t)+chroot)
	return injection.Hits() > 0
}

// Another client deletes the node of a waiter, and the connection is cut during the create of the next one.
func TestMutexQueuedAgainSurvivesOutage(t *testing.T) {
	forEveryLine(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		chroot := testenv.Chroot(t)
		direct := newClient(t, testenv.Addr(t)+chroot)
		hold := acquire(t, ctx, lock(direct))
		raw := testenv.Raw(t)
		before := nodesBelow(t, raw, chroot)
		proxy, connect := newProxy(t, chroot)
		client := newClient(t, connect, framework.WithRetryPolicy(retry.NTimes(0, 0)))
		if err := client.BlockUntilConnected(ctx); err != nil {
			t.Fatal(err)
		}
		next := acquireBehind(t, ctx, lock(client), testenv.Addr(t)+chroot)
		cut := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.CutBefore})
		for _, node := range nodesBelow(t, raw, chroot) {
			if slices.Contains(before, node) {
				continue
			}
			if err := raw.Delete(node, -1); err != nil { // as an operator would
				t.Fatal(err)
			}
		}
		release(t, hold)
		release(t, receive(t, next))
		if cut.Hits() == 0 {
			t.Error("the connection was not cut")
		}
		awaitNothing(t, testenv.Addr(t)+chroot)
	})
}

// In Java: TestLockInternals.testAttemptLockFailedException (CURATOR-41).
func TestAcquireCleanupFailedReturnsErrorOfAcquire(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect, framework.WithRetryPolicy(retry.NTimes(5, 5*time.Millisecond)))
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	faults := proxy.Faults()
	faults.Add(curatortest.Rule{Ops: []string{"getChildren2"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
	cut := faults.Add(curatortest.Rule{Ops: []string{"delete"}, Count: 2, Action: curatortest.CutBefore})
	_, err := locks.NewInterProcessMutex(client, lockPath).Acquire(ctx)
	if !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, framework.ErrConnectionLoss) {
		t.Errorf("got %v", err)
	}
	if err := cut.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	awaitNothing(t, testenv.Addr(t)+chroot)
}

// CURATOR-45: the node that the server has made all the same is looked for where it is, namespace and all.
func TestMutexLostRepliesInNamespaceLeaveNoNode(t *testing.T) {
	forEveryLine(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
			ctx := testenv.Context(t)
			chroot := testenv.Chroot(t)
			proxy, connect := newProxy(t, chroot)
			client := newClient(t, connect, framework.WithNamespace("ns"), framework.WithRetryPolicy(retry.NTimes(0, 0)),
				framework.WithSessionTimeout(30*time.Second)) // which does not clean up
			if err := client.BlockUntilConnected(ctx); err != nil {
				t.Fatal(err)
			}
			injection := proxy.Faults().Add(curatortest.Rule{
				Ops: []string{"create2", "createContainer"}, Skip: k, Count: 1, Action: curatortest.CutAfter, MayMiss: k > 0,
			})
			hold, err := lock(client).Acquire(ctx)
			if err == nil {
				err = hold.Release(ctx)
			}
			if err != nil && !errors.Is(err, framework.ErrConnectionLoss) {
				t.Errorf("create %d: %v", k, err)
			}
			awaitNothing(t, testenv.Addr(t)+chroot)
			return injection.Hits() > 0
		})
	})
}

func TestAcquireCancelledBeforeReplyLeavesNoNode(t *testing.T) {
	for _, op := range []string{"create2", "getChildren2", "getData"} {
		t.Run(op, func(t *testing.T) {
			ctx := testenv.Context(t)
			chroot := testenv.Chroot(t)
			proxy, connect := newProxy(t, chroot)
			direct := newClient(t, testenv.Addr(t)+chroot)
			hold := acquire(t, ctx, locks.NewInterProcessMutex(direct, lockPath))
			client := newClient(t, connect)
			if err := client.BlockUntilConnected(ctx); err != nil {
				t.Fatal(err)
			}
			held := proxy.Faults().Add(curatortest.Rule{Ops: []string{op}, Count: 1, Action: curatortest.HoldReply})
			waiting, cancel := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() {
				_, err := locks.NewInterProcessMutex(client, lockPath).Acquire(waiting)
				done <- err
			}()
			if err := held.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			held.Release()
			awaitContenders(t, direct, 1)
			release(t, hold)
		})
	}
}

func TestHoldSilentConnectionIsLostInTime(t *testing.T) {
	for _, direction := range []curatortest.Direction{curatortest.ToServer, curatortest.ToClient, curatortest.Both} {
		t.Run(fmt.Sprint(direction), func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTimeTwice(t, func(t *testing.T, proxy, bystander testenv.Place, chroot string) {
				ctx := testenv.Context(t)
				short := framework.WithSessionTimeout(2 * time.Second)
				client := newClient(t, proxy.Addr()+chroot, short, framework.WithDialer(proxy.DialContext))
				hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
				other := newClient(t, bystander.Addr()+chroot, short, framework.WithDialer(bystander.DialContext))
				granted := make(chan time.Time, 1)
				go func() {
					next, err := locks.NewInterProcessMutex(other, lockPath).Acquire(ctx)
					if err != nil {
						t.Error(err)
						close(granted)
						return
					}
					granted <- time.Now()
					if err := next.Release(ctx); err != nil {
						t.Error(err)
					}
				}()
				awaitContenders(t, other, 2)
				missed := func(_, _ time.Time) time.Duration { return 0 } // time is that of a bubble
				if testenv.Real() {
					pulse := chaos.NewPulse()
					defer pulse.Stop()
					missed = pulse.Missed
				}
				ended := make(chan time.Time, 1)
				context.AfterFunc(hold.Context(), func() { ended <- time.Now() })
				restore := proxy.Faults().BlackHole(direction)
				start := time.Now()
				if cause := awaitEnd(t, ctx, hold); !errors.Is(cause, locks.ErrLockLost) {
					t.Errorf("cause %v", cause)
				}
				lost := <-ended
				const tick = 500 * time.Millisecond // a quarter of a server's default
				took, limit := lost.Sub(start), client.SessionTimeout()+tick+missed(start, lost)
				if took > limit {
					t.Errorf("reported after %v, later than %v", took, limit)
				}
				const notice = 50 * time.Millisecond // goroutines take to see what has happened, on a busy machine
				if next, ok := <-granted; ok && lost.Sub(next) > notice+missed(start, lost) {
					t.Errorf("the next had the lock %v before the holder lost it", lost.Sub(next))
				}
				restore()
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Each request of an acquire and a release is throttled in turn, a few times.
func TestAcquireThrottledSucceeds(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(ctx context.Context, c *framework.Client) (release func(context.Context) error, err error){
		"semaphore": func(ctx context.Context, c *framework.Client) (func(context.Context) error, error) {
			lease, err := locks.NewInterProcessSemaphoreV2(c, lockPath, 1).Acquire(ctx)
			return lease.Return, err
		},
	}
	for name, lock := range everyLock {
		kinds[name] = func(ctx context.Context, c *framework.Client) (func(context.Context) error, error) {
			hold, err := lock(c).Acquire(ctx)
			return hold.Release, err
		}
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.EachRequest(t, func(t *testing.T, k int) (hit bool) {
				ctx, chroot := testenv.Context(t), testenv.Chroot(t)
				client, proxy := proxied(t, chroot)
				throttled := proxy.Faults().Add(curatortest.Rule{
					Skip: k, Count: 2, Action: curatortest.ReplyError, Err: jute.ErrThrottledOp, MayMiss: true,
				})
				giveBack, err := kind(ctx, client)
				if err != nil {
					t.Fatal(err)
				}
				if err := giveBack(ctx); err != nil {
					t.Error(err)
				}
				awaitNothing(t, testenv.Addr(t)+chroot)
				return throttled.Hits() > 0
			})
		})
	}
}

// CURATOR-495: code that blocks in a callback, and waits for a lock in it, is woken all the same.
func TestAcquireInCallbackIsGranted(t *testing.T) {
	forEveryLine(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx := testenv.Context(t)
		chroot := testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		hold := acquire(t, ctx, lock(newClient(t, testenv.Addr(t)+chroot)))
		client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second))
		called, got := make(chan struct{}), make(chan *locks.Hold, 1)
		callback := func(context.Context, callbacks.Event) {
			close(called)
			next, err := lock(client).Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- next
		}
		if err := client.GetChildren().InBackground(callback).ForPath(ctx, "/"); err != nil {
			t.Fatal(err)
		}
		<-called
		proxy.Faults().CutAll() // and it connects again meanwhile
		release(t, hold)
		release(t, receive(t, got))
		awaitNothing(t, testenv.Addr(t)+chroot)
	})
}
