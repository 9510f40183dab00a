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
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/jute"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
	"github.com/gocurator/curator/zkpath"
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

// A waiter that gives up takes its watch back. That is delayed by an outage and comes when the next waiter of the
// client has set its watch on the same node already: it must not take that one.
func TestWaiterLateRemovalKeepsNextWatch(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(direct, lockPath))
	client := newClient(t, connect, framework.WithSessionTimeout(10*time.Second),
		framework.WithRetryPolicy(&unevenPolicy{Policy: retry.NTimes(5, 50*time.Millisecond)}))
	first, giveUp := context.WithCancel(ctx)
	gaveUp, granted := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := locks.NewInterProcessMutex(client, lockPath).Acquire(first)
		gaveUp <- err
	}()
	awaitContenders(t, direct, 2)
	watched := func() bool { return waitersOf(t, hold.Path()) == 1 }
	testenv.Eventually(t, watched, "the holder's node is watched")

	removals := []string{"removeWatches", "checkWatches"}
	delayed := proxy.Faults().Add(curatortest.Rule{Ops: removals, Count: 1, Action: curatortest.CutBefore})
	giveUp()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := delayed.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	go func() {
		next, err := locks.NewInterProcessMutex(client, lockPath).Acquire(ctx)
		if err == nil {
			err = next.Release(ctx)
		}
		granted <- err
	}()
	awaitContenders(t, direct, 2)
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

func TestWaiterSessionLostQueuesAgain(t *testing.T) {
	expire := func(client *framework.Client) error { return testenv.Server(t).ExpireSession(client.SessionID()) }
	for name, tt := range map[string]struct {
		beforeWatch bool // its watch is that of the next session
		lose        func(client *framework.Client) error
	}{
		"expired":                     {false, expire},
		"expired before it watches":   {true, expire},
		"given up, its node is there": {false, (*framework.Client).Reset}, // until the timeout of the session
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testenv.Context(t)
			chroot := testenv.Chroot(t)
			direct := newClient(t, testenv.Addr(t)+chroot)
			mu := locks.NewInterProcessMutex(direct, lockPath)
			hold := acquire(t, ctx, mu)
			client, proxy := proxied(t, chroot)
			var watching *curatortest.Injection
			if tt.beforeWatch {
				watching = proxy.Faults().Add(curatortest.Rule{
					Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest,
				})
			}
			next := acquireLater(t, ctx, locks.NewInterProcessMutex(client, lockPath))
			if tt.beforeWatch {
				if err := watching.Wait(ctx); err != nil {
					t.Fatal(err)
				}
			} else {
				testenv.Eventually(t, func() bool { return waitersOf(t, hold.Path()) == 1 }, "it waits")
			}
			old := client.SessionID()
			if err := tt.lose(client); err != nil {
				t.Fatal(err)
			}
			if tt.beforeWatch {
				proxy.Faults().CutAll()
			}
			ofNextSession := func(node string) bool {
				stat, err := direct.CheckExists().ForPath(ctx, node)
				return err == nil && stat != nil && stat.EphemeralOwner == client.SessionID() && client.SessionID() != old
			}
			testenv.Eventually(t, func() bool {
				nodes, err := mu.ParticipantNodes(ctx)
				return err == nil && len(nodes) >= 2 && ofNextSession(nodes[len(nodes)-1])
			}, "a node of the next session in line")
			release(t, hold)
			got := receive(t, next)
			if !ofNextSession(got.Path()) {
				t.Error("granted on a node of an earlier session")
			}
			release(t, got)
		})
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

// The watch of a waiter ends without an event of its node when the servers refuse the credentials.
func TestWaiterCredentialsRefusedFails(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTimeTwice(t, func(t *testing.T, one, two testenv.Place, chroot string) {
		ctx := testenv.Context(t)
		holder := newClient(t, two.Addr()+chroot, framework.WithDialer(two.DialContext))
		client := newClient(t, one.Addr()+chroot, framework.WithDialer(one.DialContext),
			framework.WithAuth("digest", []byte("a:b")))
		acquire(t, ctx, locks.NewInterProcessMutex(holder, lockPath))
		ended := make(chan error, 1)
		go func() {
			_, err := locks.NewInterProcessMutex(client, lockPath).Acquire(ctx)
			ended <- err
		}()
		testenv.Eventually(t, func() bool { return framesOf(one.Faults(), true, "getData") == 1 }, "it waits")
		one.Faults().Add(curatortest.Rule{
			Ops: []string{"auth"}, Action: curatortest.ReplyError, Err: zk.ErrAuthFailed,
		})
		one.Faults().CutAll()
		if err := <-ended; !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("got %v, want zk.ErrAuthFailed", err)
		}
	})
}

// A waiter cannot watch a node that it may not read: it would never hear of its end.
func TestWaiterWithoutReadPermissionFails(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	direct := newClient(t, testenv.Addr(t)+chroot)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(direct, lockPath))
	client, proxy := proxied(t, chroot)
	proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth})
	if _, err := locks.NewInterProcessMutex(client, lockPath).Acquire(ctx); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("got %v", err)
	}
	awaitContenders(t, direct, 1)
	release(t, hold)
}

// A waiter that has lost its session sets a watch in the next one: it is taken back when the waiter lines up anew.
func TestWaiterWatchOfNextSessionIsRemoved(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	direct := newClient(t, testenv.Addr(t)+chroot)
	mu := locks.NewInterProcessMutex(direct, lockPath)
	hold := acquire(t, ctx, mu)
	client, proxy := proxied(t, chroot)
	watching := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest})
	waiting, giveUp := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := locks.NewInterProcessMutex(client, lockPath).Acquire(waiting)
		done <- err
	}()
	if err := watching.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	proxy.Faults().CutAll()
	testenv.Eventually(t, func() bool {
		nodes, err := mu.ParticipantNodes(ctx)
		return err == nil && len(nodes) == 2 && waitersOf(t, hold.Path()) == 1
	}, "it stands in line anew")
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	awaitContenders(t, direct, 1)
	testenv.Eventually(t, func() bool { return waitersOf(t, hold.Path()) == 0 }, "no watch is left")
	release(t, hold)
}

// unretried is a client that retries nothing.
func unretried(tb testing.TB, connect string) *framework.Client {
	tb.Helper()
	return testclient.Connect(tb, connect, testclient.NoRetries, framework.WithSessionTimeout(30*time.Second))
}

// A server with too much to do refuses the reads of a waiter.
func TestWaiterThrottledKeepsPlace(t *testing.T) {
	t.Parallel()
	forEveryLock(t, func(t *testing.T, lock func(*framework.Client) locks.InterProcessLock) {
		t.Helper()
		ctx, chroot := testenv.Context(t), testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		client, direct, raw := unretried(t, connect), newClient(t, testenv.Addr(t)+chroot), testenv.Raw(t)
		hold := acquire(t, ctx, lock(direct))
		held := nodesBelow(t, raw, chroot)
		waiter := acquireLater(t, ctx, lock(client))
		var before []string
		testenv.Eventually(t, func() bool {
			before = nodesBelow(t, raw, chroot)
			return len(before) > len(held) && testclient.KnowsItsNode(proxy.Faults())
		}, "it waits")
		throttled := proxy.Faults().Add(curatortest.Rule{
			Ops: []string{"getData", "getChildren2"}, Count: 10, Action: curatortest.ReplyError, Err: jute.ErrThrottledOp,
		})
		for _, node := range held { // it looks again after a change of the node that it watches, or after an outage
			if _, err := raw.Set(node, nil, -1); err != nil {
				t.Fatal(err)
			}
		}
		proxy.Faults().CutAll()
		testenv.Eventually(t, func() bool { return throttled.Hits() == 10 }, "the reads are throttled")
		if after := nodesBelow(t, raw, chroot); !slices.Equal(after, before) {
			t.Errorf("nodes %q, before %q", after, before)
		}
		release(t, hold)
		release(t, receive(t, waiter))
	})
}

func TestWaiterWatchRemovedIsGranted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		lock    func(c *framework.Client) locks.InterProcessLock
		watched func(hold string) string // by a waiter
	}{
		{
			"mutex",
			func(c *framework.Client) locks.InterProcessLock { return locks.NewInterProcessMutex(c, lockPath) },
			func(hold string) string { return hold },
		},
		{
			"semaphore mutex",
			func(c *framework.Client) locks.InterProcessLock {
				return locks.NewInterProcessSemaphoreMutex(c, lockPath)
			},
			zkpath.Parent,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, place := testenv.Context(t), testenv.ConnectString(t)
			client := newClient(t, place)
			first := acquire(t, ctx, tt.lock(newClient(t, place)))
			got := acquireLater(t, ctx, tt.lock(client))
			for range 2 {
				removeWatches(t, client, tt.watched(first.Path()))
			}
			release(t, first)
			release(t, receive(t, got))
		})
	}
}

// A client at the bound of WithMaxPending leaves no node in the line: it would hold everybody up as long as the
// session.
func TestWaiterMaxPendingReachedLeavesNoNode(t *testing.T) {
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	holder, bounded := startBounded(t, connect, 0), startBounded(t, connect, 1)
	const path = "/bounded/lock"
	hold, err := locks.NewInterProcessMutex(holder, path).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	defer close(release)
	running := make(chan struct{}, 2)
	block := func(context.Context, callbacks.Event) {
		running <- struct{}{}
		<-release
	}
	if err := bounded.CheckExists().InBackground(block).ForPath(ctx, "/"); err != nil {
		t.Fatal(err)
	}
	<-running
	if err := bounded.CheckExists().InBackground(block).ForPath(ctx, "/"); err != nil { // behind it
		t.Fatal(err)
	}
	if _, err := locks.NewInterProcessMutex(bounded, path).TryAcquire(ctx, 200*time.Millisecond); err == nil {
		t.Fatal("acquired what is held")
	}
	testenv.Eventually(t, func() bool { // while the callback blocks
		nodes, err := holder.GetChildren().ForPath(ctx, path)
		return err == nil && len(nodes) == 1
	}, "its node is gone")
	if err := hold.Release(ctx); err != nil {
		t.Error(err)
	}
	hold, err = locks.NewInterProcessMutex(holder, path).Acquire(ctx)
	if err != nil {
		t.Fatalf("the next one: %v", err)
	}
	if err := hold.Release(ctx); err != nil {
		t.Error(err)
	}
}

func startBounded(tb testing.TB, connect string, pending int) *framework.Client {
	tb.Helper()
	client, err := framework.New(connect, framework.WithMaxPending(pending), framework.WithSessionTimeout(30*time.Second))
	if err != nil {
		tb.Fatal(err)
	}
	if err := client.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	if err := client.BlockUntilConnected(testenv.Context(tb)); err != nil {
		tb.Fatal(err)
	}
	if err := client.Drain(testenv.Context(tb)); err != nil { // the ensemble tracker
		tb.Fatal(err)
	}
	return client
}

func TestWaiterServerRestartKeepsPlace(t *testing.T) {
	ctx := testenv.Context(t)
	server := testenv.NewServer(t)
	long := framework.WithSessionTimeout(30 * time.Second)
	quick := framework.WithRetryPolicy(retry.NTimes(1, time.Millisecond)) // the wait does not depend on it
	holder := newClient(t, server.ConnectString(), long)
	waiter := newClient(t, server.ConnectString(), long, quick)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(holder, lockPath))
	granted := make(chan error, 1)
	go func() {
		next, err := locks.NewInterProcessMutex(waiter, lockPath).Acquire(ctx)
		if err == nil {
			err = next.Release(ctx)
		}
		granted <- err
	}()
	awaitContenders(t, holder, 2)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := holder.BlockUntilConnected(ctx); err != nil {
		t.Fatal(err)
	}
	if hold.Context().Err() != nil {
		t.Fatal("the hold has not survived, with a session of 30 s")
	}
	release(t, hold)
	if err := <-granted; err != nil {
		t.Error(err)
	}
}

func TestWaiterNodeDeletedIsCreatedAgain(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath)
	hold := acquire(t, ctx, mu)
	granted := make(chan error)
	go func() {
		h, err := mu.Acquire(ctx)
		if err == nil {
			err = h.Release(ctx)
		}
		granted <- err
	}()
	awaitContenders(t, client, 2)
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Delete().ForPath(ctx, nodes[1]); err != nil { // as a janitor would, while it waits
		t.Fatal(err)
	}
	release(t, hold)
	if err := <-granted; err != nil {
		t.Error(err)
	}
}

func TestWaiterWatchesOnlyPreviousNode(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath)
	hold := acquire(t, ctx, mu)
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			h, err := mu.Acquire(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			if err := h.Release(ctx); err != nil {
				t.Error(err)
			}
		})
		awaitContenders(t, client, i+2)
	}
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool {
		all := watches(t)
		for i, node := range nodes {
			if watched := strings.Contains(all, node); watched != (i < len(nodes)-1) {
				return false
			}
		}
		return true
	}, "every node but the last is watched")
	release(t, hold)
	wg.Wait()
}
