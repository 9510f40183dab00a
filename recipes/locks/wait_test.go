package locks_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// unevenPolicy pauses longer for the first operation that fails than for the others, as a random policy may.
type unevenPolicy struct {
	retry.Policy
	schedules atomic.Int32
}

func (p *unevenPolicy) NewBackOff() backoff.BackOff {
	if p.schedules.Add(1) == 1 {
		return retry.NTimes(5, time.Second).NewBackOff()
	}
	return p.Policy.NewBackOff()
}

// A waiter that was woken by an outage takes its watch back and sets it again. The taking back is delayed by another
// outage and comes when the new watch is set already: it must not take that one.
func TestWaiterLateRemovalKeepsNextWatch(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(direct, lockPath))
	client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second),
		framework.WithRetryPolicy(&unevenPolicy{Policy: retry.NTimes(5, 50*time.Millisecond)}))
	granted := make(chan error, 1)
	go func() {
		next, err := locks.NewInterProcessMutex(client, lockPath).Acquire(ctx)
		if err == nil {
			err = next.Release(ctx)
		}
		granted <- err
	}()
	awaitContenders(t, direct, 2)
	watched := func() bool { return waitersOf(t, hold.Path()) == 1 }
	testenv.Eventually(t, watched, "the holder's node is watched")

	removals := []string{"removeWatches", "checkWatches"}
	delayed := proxy.Faults().Add(curatortest.Rule{Ops: removals, Count: 1, Action: curatortest.CutBefore})
	proxy.Faults().CutAll()
	if err := delayed.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	// The removal is tried again after a second, if it is: nothing else is sent by then.
	proxy.Faults().ResetTrace()
	deadline := time.NewTimer(2 * time.Second)
	defer deadline.Stop()
	<-deadline.C
	testenv.Eventually(t, watched, "the holder's node is watched again")
	release(t, hold)
	if err := <-granted; err != nil {
		t.Error(err)
	}
}

func TestWaiterSessionExpiredQueuesAgainAtOnce(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	direct := newClient(t, connect)
	mu := locks.NewInterProcessMutex(direct, lockPath)
	hold := acquire(t, ctx, mu)
	client := newClient(t, connect)
	granted := make(chan error, 1)
	go func() {
		next, err := locks.NewInterProcessMutex(client, lockPath).Acquire(ctx)
		if err == nil {
			err = next.Release(ctx)
		}
		granted <- err
	}()
	awaitContenders(t, direct, 2)
	old := client.SessionID()
	if err := client.Reset(); err != nil { // the node of the old session stays until its timeout
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool {
		nodes, err := mu.ParticipantNodes(ctx)
		if err != nil || len(nodes) < 2 {
			return false
		}
		stat, err := direct.CheckExists().ForPath(ctx, nodes[len(nodes)-1])
		return err == nil && stat != nil && stat.EphemeralOwner == client.SessionID() && client.SessionID() != old
	}, "a node of the new session in line")
	release(t, hold)
	if err := <-granted; err != nil {
		t.Error(err)
	}
}

func TestWaiterWatchReplyAfterCancelIsRemoved(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(direct, lockPath))
	client := newClient(t, connect)
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	held := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldReply})
	for wait := 150 * time.Millisecond; held.Hits() == 0; wait *= 2 { // until it has begun before it ends
		_, err := locks.NewInterProcessMutex(client, lockPath).TryAcquire(ctx, wait)
		if !errors.Is(err, locks.ErrNotAcquired) {
			t.Fatalf("got %v", err)
		}
	}
	held.Release()
	awaitContenders(t, direct, 1)
	testenv.Eventually(t, func() bool { return waitersOf(t, hold.Path()) == 0 }, "no watch is left")
	release(t, hold)
}

// CURATOR-644: the one before it leaves when it has been found, and before it is watched. The place in line is kept.
func TestWaiterPredecessorGoneBeforeWatchKeepsPlace(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	mu := locks.NewInterProcessMutex(direct, lockPath)
	first := acquire(t, ctx, mu)
	second := acquireBehind(t, ctx, locks.NewInterProcessMutex(newClient(t, testenv.Addr(t)+chroot), lockPath), connect)
	client := newClient(t, connect)
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	watching := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest})
	third := acquireLater(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	if err := watching.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil || len(nodes) != 3 {
		t.Fatalf("%v, error %v", nodes, err)
	}
	if err := direct.Delete().ForPath(ctx, nodes[1]); err != nil { // it lines up anew behind the third
		t.Fatal(err)
	}
	watching.Release()
	testenv.Eventually(t, func() bool { return waitersOf(t, nodes[0]) == 2 }, "both wait for the first")
	release(t, first)
	got := receive(t, third)
	if got.Path() != nodes[2] {
		t.Errorf("granted with %s, it stood in line with %s", got.Path(), nodes[2])
	}
	release(t, got)
	release(t, receive(t, second))
	awaitNothing(t, testenv.Addr(t)+chroot)
}

// CURATOR-495: code that blocks in a callback, and waits for a lock in it, is woken all the same.
func TestAcquireInCallback(t *testing.T) {
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

// The session is lost when the waiter stands in line, and does not yet watch the one before it: its watch is that of
// the next session, and its node is gone.
func TestWaiterSessionExpiredBeforeWatchQueuesAgainAtOnce(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	mu := locks.NewInterProcessMutex(direct, lockPath)
	hold := acquire(t, ctx, mu)
	client := newClient(t, connect)
	if err := client.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	watching := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest})
	next := acquireLater(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	if err := watching.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	proxy.Faults().CutAll()
	testenv.Eventually(t, func() bool {
		nodes, err := mu.ParticipantNodes(ctx)
		return err == nil && len(nodes) == 2
	}, "it stands in line anew")
	release(t, hold)
	release(t, receive(t, next))
}
