package locks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// What a hand-over costs, and why a waiter that is woken lists the line, is in docs/design/handover.md.

// proxied returns a connected client behind a proxy that has traced nothing yet. It pings less often than a test takes.
func proxied(tb testing.TB, chroot string) (*framework.Client, *curatortest.Proxy) {
	tb.Helper()
	proxy, connect := newProxy(tb, chroot)
	client := newClient(tb, connect, framework.WithSessionTimeout(30*time.Second))
	if err := client.BlockUntilConnected(testenv.Context(tb)); err != nil {
		tb.Fatal(err)
	}
	proxy.Faults().ResetTrace()
	return client, proxy
}

// passed returns what has passed through a proxy: requests and watch events or, if answers is set, the answers.
func passed(proxy *curatortest.Proxy, answers bool) (ops []string) {
	for _, e := range proxy.Faults().Trace() {
		if answers == (e.Reply && e.Op != "notification") {
			ops = append(ops, e.Op)
		}
	}
	return ops
}

// passedBut is passed without these operations on own, the nodes of holders: a hold that lasts is watched.
func passedBut(proxy *curatortest.Proxy, own []string, but ...string) (ops []string) {
	for _, e := range proxy.Faults().Trace() {
		if e.Op == "heartbeat" { // they come when a test takes its time
			continue
		}
		isOwn := func(node string) bool { return strings.HasSuffix(e.Path, node) }
		if (!e.Reply || e.Op == "notification") && (!slices.Contains(but, e.Op) || !slices.ContainsFunc(own, isOwn)) {
			ops = append(ops, e.Op)
		}
	}
	return ops
}

// keepLine creates the node of the lock as one that stays when it is empty: a container may go between two acquires.
func keepLine(tb testing.TB, client *framework.Client) {
	tb.Helper()
	_, err := client.Create().CreatingParentsIfNeeded().WithMode(builders.Persistent).
		ForPath(testenv.Context(tb), lockPath, nil)
	if err != nil {
		tb.Fatal(err)
	}
}

// awaitBehind waits until a contender waits for a holder, and fails if it is granted the lock beside it.
func awaitBehind(tb testing.TB, holder *locks.Hold, next <-chan *locks.Hold) {
	tb.Helper()
	testenv.Eventually(tb, func() bool {
		if len(next) != 0 {
			tb.Fatal("two hold the lock")
		}
		return waitersOf(tb, holder.Path()) == 1
	}, "a contender waits for the holder")
}

func TestGrantRequests(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	direct := newClient(t, testenv.Addr(t)+chroot)
	keepLine(t, direct)
	client, proxy := proxied(t, chroot)
	var hold *locks.Hold
	own := func() string { return hold.Path() } // a hold that lasts is watched
	want := func(what string, ops ...string) {
		t.Helper()
		got := passedBut(proxy, []string{own()}, "getData", "notification", "checkWatches", "removeWatches")
		if len(got) > len(ops) && got[0] == "removeWatches" { // the end of the watch of the last hold comes late
			got = got[1:]
		}
		if diff := cmp.Diff(ops, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		proxy.Faults().ResetTrace()
	}

	mu := locks.NewInterProcessMutex(client, lockPath)
	hold = acquire(t, ctx, mu)
	want("grant without others ahead", "create2", "getChildren2")
	release(t, hold)
	want("release", "delete")

	others := locks.NewInterProcessMutex(direct, lockPath)
	first := acquire(t, ctx, locks.NewInterProcessMutex(newClient(t, testenv.Addr(t)+chroot), lockPath))
	second := acquireLater(t, ctx, others)
	awaitBehind(t, first, second)
	nodes, err := others.ParticipantNodes(ctx)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%v, error %v", nodes, err)
	}
	third := acquireLater(t, ctx, mu)
	testenv.Eventually(t, func() bool { return watchersOf(t, nodes[1]) == 1 }, "the third waits")
	want("lining up behind others", "create2", "getChildren2", "getData")
	release(t, first)
	hold = receive(t, second)
	want("grant of another")
	release(t, hold)
	hold = receive(t, third)
	want("grant after a wait", "notification", "getChildren2")
	release(t, hold)
	want("release", "delete")

	answer := proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
	fourth := acquireLater(t, ctx, locks.NewInterProcessMutex(client, "/new/lock"))
	testenv.Eventually(t, func() bool { return slices.Contains(passed(proxy, false), "getChildren2") },
		"the list is requested before the create is refused")
	answer.Release()
	hold = receive(t, fourth)
	want("first grant of a lock",
		"create2", "getChildren2", "exists", "exists", "createContainer", "createContainer", "create2", "getChildren2")
	release(t, hold)
	want("release", "delete")

	for _, node := range []string{"/locks", "/leases"} {
		if _, err := direct.Create().CreatingParentsIfNeeded().ForPath(ctx, semaphorePath+node, nil); err != nil {
			t.Fatal(err)
		}
	}
	lease := takeLease(t, ctx, locks.NewInterProcessSemaphoreV2(client, semaphorePath, 2))
	own = lease.Path
	want("lease that is free", "create2", "getChildren2", "exists", "multi")
	returnLease(t, lease)
	want("return", "delete")
}

func TestAcquireSendsCreateAndListTogether(t *testing.T) {
	t.Parallel()
	client, proxy := proxied(t, testenv.Chroot(t))
	keepLine(t, client)
	answer := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"create2"}, Path: "/**/*-lock-", Count: 1, Action: curatortest.HoldReply,
	})
	ctx := testenv.Context(t)
	next := acquireLater(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	if err := answer.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return slices.Contains(passed(proxy, false), "getChildren2") },
		"the list is requested before the create is answered")
	answer.Release()
	release(t, receive(t, next))
}

func TestGrantRequestsDoNotGrowWithQueue(t *testing.T) {
	t.Parallel()
	for _, waiters := range []int{1, 10, 100} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			t.Parallel()
			ctx := testenv.Context(t)
			client, proxy := proxied(t, testenv.Chroot(t))
			mu := locks.NewInterProcessMutex(client, lockPath)
			hold := acquire(t, ctx, mu)
			granted := make(chan *locks.Hold, waiters)
			for range waiters {
				go func() {
					next, err := mu.Acquire(ctx)
					if err != nil {
						t.Error(err)
					}
					granted <- next
				}()
			}
			reads := waiters + 1 // the holder reads its own node
			testenv.Eventually(t, func() bool { return count(passed(proxy, true))["getData"] >= reads }, "all wait")
			proxy.Faults().ResetTrace()
			own := []string{hold.Path()}
			for range waiters {
				release(t, hold)
				hold = receive(t, granted)
				own = append(own, hold.Path())
			}
			want := map[string]int{"delete": waiters, "notification": waiters, "getChildren2": waiters}
			if diff := cmp.Diff(want, count(passedBut(proxy, own, "getData", "checkWatches", "removeWatches"))); diff != "" {
				t.Errorf("%d grants (-want +got):\n%s", waiters, diff)
			}
			release(t, hold)
		})
	}
}

// count returns how many there are of each.
func count(ops []string) map[string]int {
	n := map[string]int{}
	for _, op := range ops {
		n[op]++
	}
	return n
}

// The writer becomes a reader with a node of the same number, and lets its own go.
func TestWriterBehindDowngradedWriterIsNotGranted(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	rw, other := newReadWriteLock(t, connect), newReadWriteLock(t, connect)
	me := locks.WithOwner(ctx)
	writing := acquire(t, me, rw.WriteLock())
	next := acquireLater(t, ctx, other.WriteLock())
	awaitBehind(t, writing, next)
	reading := acquire(t, me, rw.ReadLock())
	release(t, writing)
	awaitBehind(t, reading, next)
	release(t, reading)
	release(t, receive(t, next))
}

func TestWaiterNodeDeletedIsNotGranted(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	direct := newClient(t, connect)
	mu := locks.NewInterProcessMutex(direct, lockPath)
	first := acquire(t, ctx, mu)
	next := acquireLater(t, ctx, locks.NewInterProcessMutex(newClient(t, connect), lockPath))
	awaitBehind(t, first, next)
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%v, error %v", nodes, err)
	}
	third := acquireLater(t, ctx, locks.NewInterProcessMutex(newClient(t, connect), lockPath))
	testenv.Eventually(t, func() bool { return watchersOf(t, nodes[1]) == 1 }, "the third waits for the second")
	if err := direct.Delete().ForPath(ctx, nodes[1]); err != nil { // as an operator would
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return waitersOf(t, first.Path()) == 2 }, "the third waits for the first")
	release(t, first)
	holder := receive(t, third)
	awaitBehind(t, holder, next)
	release(t, holder)
	release(t, receive(t, next))
}

// All nodes of the line go in one transaction, the line too, and the next one counts from 0 again.
func TestWaiterQueueRecreatedIsNotGranted(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	client, proxy := proxied(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	mu := locks.NewInterProcessMutex(direct, lockPath)
	first := acquire(t, ctx, mu)
	next := acquireLater(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	awaitBehind(t, first, next)
	nodes, err := mu.ParticipantNodes(ctx)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%v, error %v", nodes, err)
	}
	event := proxy.Faults().Add(curatortest.Rule{Ops: []string{"notification"}, Count: 1, Action: curatortest.HoldReply})
	op := direct.TransactionOp()
	_, err = direct.Transaction().ForOperations(ctx,
		op.Delete().ForPath(nodes[0]), op.Delete().ForPath(nodes[1]), op.Delete().ForPath(lockPath))
	if err != nil {
		t.Fatal(err)
	}
	if err := event.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	holder := acquire(t, ctx, mu)
	event.Release()
	awaitBehind(t, holder, next)
	release(t, holder)
	release(t, receive(t, next))
	release(t, first)
}

// The event that the one before it is gone comes when the session of the waiter is over, and its place another's.
func TestWaiterEventAfterSessionEndIsNotGranted(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	client, proxy := proxied(t, chroot)
	mu := locks.NewInterProcessMutex(newClient(t, testenv.Addr(t)+chroot), lockPath)
	first := acquire(t, ctx, mu)
	next := acquireLater(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	awaitBehind(t, first, next)
	event := proxy.Faults().Add(curatortest.Rule{Ops: []string{"notification"}, Count: 1, Action: curatortest.HoldReply})
	release(t, first)
	if err := event.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Server(t).ExpireSession(client.SessionID()); err != nil {
		t.Fatal(err)
	}
	holder := acquire(t, ctx, mu)
	event.Release()
	awaitBehind(t, holder, next)
	release(t, holder)
	release(t, receive(t, next))
}
