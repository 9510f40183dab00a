package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// unusable is a lock that cannot be had.
type unusable struct {
	locks.InterProcessLock
	acquire error
}

func (u unusable) Acquire(context.Context) (*locks.Hold, error) { return nil, u.acquire }
func (u unusable) TryAcquire(context.Context, time.Duration) (*locks.Hold, error) {
	return nil, u.acquire
}

// In Java: TestInterProcessMultiMutex.testSomeLocksFailToLock. Java goes on to acquire the others.
func TestMultiLockOneNotAcquiredHoldsNone(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client := newClient(t, connect)
	refused := errors.New("refused")
	first, last := locks.NewInterProcessMutex(client, "/first"), locks.NewInterProcessMutex(client, "/last")
	multi := locks.NewInterProcessMultiLock(first, unusable{acquire: refused}, last)
	if _, err := multi.Acquire(ctx); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if _, err := multi.TryAcquire(ctx, time.Second); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if first.IsAcquiredInThisProcess() || last.IsAcquiredInThisProcess() {
		t.Error("one is held")
	}
	awaitNothing(t, connect)
}

// In Java: TestInterProcessMultiMutex.testSomeReleasesFail.
func TestMultiLockOneReleaseFailedReleasesOthers(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	var all []locks.InterProcessLock
	for _, path := range []string{"/first", "/refused", "/last"} {
		all = append(all, locks.NewInterProcessMutex(client, path))
	}
	multi := locks.NewInterProcessMultiLock(all...)
	hold := acquire(t, ctx, multi)
	refusal := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Path: "/**/refused/*", Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	})
	if err := hold.Release(ctx); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("got %v", err)
	}
	for i, l := range all {
		if l.IsAcquiredInThisProcess() {
			t.Errorf("lock %d is held in this process", i)
		}
	}
	if multi.IsAcquiredInThisProcess() {
		t.Error("it is held in this process")
	}
	raw := testenv.Raw(t)
	left := nodesBelow(t, raw, chroot)
	if len(left) != 1 || !strings.HasPrefix(left[0], chroot+"/refused/") {
		t.Fatalf("left are %v", left)
	}
	refusal.Remove()
	if err := client.Delete().ForPath(ctx, strings.TrimPrefix(left[0], chroot)); err != nil {
		t.Error(err)
	}
}

// Java gives each of the locks the whole time.
func TestMultiLockTryAcquireHasOneWait(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client, other := newClient(t, connect), newClient(t, connect)
	first, second := locks.NewInterProcessMutex(client, "/first"), locks.NewInterProcessMutex(client, "/second")
	one := acquire(t, ctx, locks.NewInterProcessMutex(other, "/first"))
	two := acquire(t, ctx, locks.NewInterProcessMutex(other, "/second"))
	began := time.Now()
	released := make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() { // a part of the wait
		release(t, one)
		close(released)
	})
	_, err := locks.NewInterProcessMultiLock(first, second).TryAcquire(ctx, 300*time.Millisecond)
	if d := time.Since(began); !errors.Is(err, locks.ErrNotAcquired) || d < 300*time.Millisecond {
		t.Errorf("%v after %v", err, d)
	}
	<-released
	release(t, two)
	awaitNothing(t, connect)
}

func TestMultiLockOneLostIsLost(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client, other := newClient(t, connect), newClient(t, connect)
	multi := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(client, "/first"),
		locks.NewInterProcessMutex(other, "/second"))
	hold := acquire(t, ctx, multi)
	if err := testenv.Server(t).ExpireSession(other.SessionID()); err != nil {
		t.Fatal(err)
	}
	if cause := awaitEnd(t, ctx, hold); !errors.Is(cause, locks.ErrLockLost) {
		t.Errorf("cause %v", cause)
	}
	if multi.IsAcquiredInThisProcess() {
		t.Error("acquired")
	}
	release(t, hold)
	awaitNothing(t, connect)
}

// In Java the lock is held without its first part.
func TestMultiLockOneLostDuringWaitIsAcquiredAgain(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	client, other := newClient(t, connect), newClient(t, connect)
	first, second := locks.NewInterProcessMutex(client, "/first"), locks.NewInterProcessMutex(client, lockPath)
	held := acquire(t, ctx, locks.NewInterProcessMutex(other, lockPath))
	granted := make(chan *locks.Hold)
	go func() {
		hold, err := locks.NewInterProcessMultiLock(first, second).Acquire(ctx)
		if err != nil {
			t.Errorf("acquire: %v", err)
		}
		granted <- hold
	}()
	awaitContenders(t, other, 2)
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return !first.IsAcquiredInThisProcess() }, "the first is lost")
	release(t, held)
	hold := <-granted
	if hold == nil {
		return
	}
	if err := context.Cause(hold.Context()); err != nil {
		t.Errorf("granted and %v", err)
	}
	if !first.IsAcquiredInThisProcess() || !second.IsAcquiredInThisProcess() {
		t.Error("not both are held")
	}
	release(t, hold)
	awaitNothing(t, connect)
}

// It has the first lock when it gives up, and there is no connection over which to release it.
func TestMultiLockWithoutConnectionEndsInTime(t *testing.T) {
	t.Parallel()
	wait := 2 * time.Second
	if testenv.Real() { // where it has to be in line within that time
		wait = 10 * time.Second
	}
	for name, take := range map[string]struct {
		acquire func(context.Context, locks.InterProcessLock) (*locks.Hold, error)
		want    error
	}{
		"Acquire": {func(ctx context.Context, l locks.InterProcessLock) (*locks.Hold, error) {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			return l.Acquire(ctx)
		}, context.DeadlineExceeded},
		"TryAcquire": {func(ctx context.Context, l locks.InterProcessLock) (*locks.Hold, error) {
			return l.TryAcquire(ctx, wait)
		}, locks.ErrNotAcquired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx := testenv.Context(t)
				client := newClient(t, place.Addr()+chroot, framework.WithDialer(place.DialContext),
					framework.WithRetryPolicy(retry.Forever(time.Millisecond)))
				other := newClient(t, place.Addr()+chroot, framework.WithDialer(place.DialContext))
				held := acquire(t, ctx, locks.NewInterProcessMutex(other, lockPath))
				first, second := locks.NewInterProcessMutex(client, "/first"), locks.NewInterProcessMutex(client, lockPath)
				given := make(chan error, 1)
				go func() {
					_, err := take.acquire(ctx, locks.NewInterProcessMultiLock(first, second))
					given <- err
				}()
				inLine := func(mu *locks.InterProcessMutex, n int) func() bool {
					return func() bool {
						nodes, err := mu.ParticipantNodes(ctx)
						return err == nil && len(nodes) == n
					}
				}
				testenv.Eventually(t, inLine(second, 2), "it waits for the second")
				restore := place.Faults().RefuseConnects()
				defer restore()
				place.Faults().CutAll()
				select {
				case err := <-given:
					if !errors.Is(err, take.want) {
						t.Errorf("error %v, want %v", err, take.want)
					}
					if take.want == locks.ErrNotAcquired && errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error %v is also that of the release", err)
					}
				case <-ctx.Done():
					t.Error("it waits for the connection")
				}
				if first.IsAcquiredInThisProcess() {
					t.Error("the first is held")
				}
				restore()
				release(t, held)
				testenv.Eventually(t, inLine(first, 0), "the node of the first is deleted")
				testenv.Eventually(t, inLine(second, 0), "the nodes of the second are deleted")
			})
		})
	}
}

// slow is a lock that is granted when the time to wait for it is over.
type slow struct{ locks.InterProcessLock }

func (s slow) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	time.Sleep(wait)
	return s.Acquire(ctx)
}

// untouchable is a lock that must not be acquired.
type untouchable struct {
	locks.InterProcessLock
	tb testing.TB
}

func (u untouchable) TryAcquire(context.Context, time.Duration) (*locks.Hold, error) {
	u.tb.Error("it is requested")
	return nil, locks.ErrNotAcquired
}

// A wait of 0 for it would last as long as the retry policy tries for a connection.
func TestMultiLockWaitOverDoesNotTryNext(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	mu := locks.NewInterProcessMutex(newClient(t, connect), lockPath)
	_, err := locks.NewInterProcessMultiLock(slow{mu}, untouchable{tb: t}).TryAcquire(ctx, 10*time.Millisecond)
	if !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	if mu.IsAcquiredInThisProcess() {
		t.Error("the first is held")
	}
	awaitNothing(t, connect)
}
