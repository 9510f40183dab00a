package locks_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

func TestMultiLockReleasesNewestFirst(t *testing.T) {
	ctx := testenv.Context(t)
	client, proxy := proxied(t, testenv.Chroot(t))
	hold := acquire(t, ctx, locks.NewInterProcessMultiLock(
		locks.NewInterProcessMutex(client, "/a"), locks.NewInterProcessMutex(client, "/b"),
		locks.NewInterProcessMutex(client, "/c")))
	proxy.Faults().ResetTrace()
	release(t, hold)
	var released []string
	for _, e := range proxy.Faults().Trace() {
		if e.Op == "delete" && !e.Reply {
			released = append(released, path.Base(path.Dir(e.Path)))
		}
	}
	if diff := cmp.Diff([]string{"c", "b", "a"}, released); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// patient is a lock that notes how long it was to wait.
type patient struct {
	locks.InterProcessLock
	wait time.Duration
}

func (p *patient) TryAcquire(_ context.Context, wait time.Duration) (*locks.Hold, error) {
	p.wait = wait
	return nil, locks.ErrNotAcquired
}

// delayed is a lock that is granted after some time.
type delayed struct{ locks.InterProcessLock }

const delay = 20 * time.Millisecond

func (d delayed) TryAcquire(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
	time.Sleep(delay)
	return d.InterProcessLock.TryAcquire(ctx, wait)
}

func TestMultiLockNextLockGetsRemainingWait(t *testing.T) {
	ctx := testenv.Context(t)
	next := &patient{}
	first := delayed{locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), lockPath)}
	_, err := locks.NewInterProcessMultiLock(first, next).TryAcquire(ctx, time.Minute)
	if !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("got %v", err)
	}
	if next.wait <= 0 || next.wait > time.Minute-delay {
		t.Errorf("the next has %v", next.wait)
	}
}

func TestMultiLockWithoutLocksFails(t *testing.T) {
	if locks.NewInterProcessMultiLock().IsAcquiredInThisProcess() {
		t.Error("acquired")
	}
}

func TestMultiLockCopiesItsLocks(t *testing.T) {
	all := []locks.InterProcessLock{locks.NewInterProcessMutex(newClient(t, testenv.ConnectString(t)), lockPath)}
	multi := locks.NewInterProcessMultiLock(all...)
	all[0] = unusable{acquire: errors.New("refused")}
	release(t, acquire(t, testenv.Context(t), multi))
}

func TestMultiLockOneLostAndReleaseFailedFails(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	loser, client := newClient(t, testenv.Addr(t)+chroot), newClient(t, connect)
	other := newClient(t, testenv.Addr(t)+chroot)
	first := locks.NewInterProcessMutex(loser, "/first")
	held := acquire(t, ctx, locks.NewInterProcessMutex(other, lockPath))
	failed := make(chan error, 1)
	go func() {
		_, err := locks.NewInterProcessMultiLock(first, locks.NewInterProcessMutex(client, "/refused"),
			locks.NewInterProcessMutex(client, lockPath)).Acquire(ctx)
		failed <- err
	}()
	awaitContenders(t, other, 2)
	refusal := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Path: "/**/refused/*", Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
	})
	if err := testenv.Server(t).ExpireSession(loser.SessionID()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return !first.IsAcquiredInThisProcess() }, "the first is lost")
	release(t, held)
	if err := <-failed; !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("got %v", err)
	}
	refusal.Remove()
}
