package locks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/locks"
	"github.com/gocurator/curator/retry"
)

// grant is what a hold and a lease have in common.
type grant interface {
	Context() context.Context
	Path() string
}

// taken is a hold or lease and the way to give it back.
type taken struct {
	grant
	giveBack func(ctx context.Context) error
}

// kindsOfHold take a lock of each kind, by name.
func kindsOfHold() map[string]func(ctx context.Context, c *framework.Client) (taken, error) {
	kinds := map[string]func(ctx context.Context, c *framework.Client) (taken, error){
		"lease": func(ctx context.Context, c *framework.Client) (taken, error) {
			lease, err := locks.NewInterProcessSemaphoreV2(c, lockPath, 2).Acquire(ctx)
			return taken{lease, lease.Return}, err
		},
	}
	one := func(name string, lock func(c *framework.Client) locks.InterProcessLock) {
		kinds[name] = func(ctx context.Context, c *framework.Client) (taken, error) {
			hold, err := lock(c).Acquire(ctx)
			return taken{hold, hold.Release}, err
		}
	}
	for name, lock := range everyLock {
		one(name, lock)
	}
	one("read lock", func(c *framework.Client) locks.InterProcessLock {
		return locks.NewInterProcessReadWriteLock(c, lockPath).ReadLock()
	})
	one("revocable mutex", func(c *framework.Client) locks.InterProcessLock {
		mu := locks.NewInterProcessMutex(c, lockPath)
		mu.MakeRevocable(func(*locks.Hold) {})
		return mu
	})
	kinds["reader that was the writer"] = func(ctx context.Context, c *framework.Client) (taken, error) {
		rw, me := locks.NewInterProcessReadWriteLock(c, lockPath), locks.WithOwner(ctx)
		writing, err := rw.WriteLock().Acquire(me)
		if err != nil {
			return taken{}, err
		}
		reading, err := rw.ReadLock().Acquire(me)
		return taken{reading, reading.Release}, errors.Join(err, writing.Release(ctx))
	}
	return kinds
}

func forEveryHold(t *testing.T, test func(t *testing.T, take func(*framework.Client) taken)) {
	t.Helper()
	for name, kind := range kindsOfHold() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(c *framework.Client) taken {
				t.Helper()
				hold, err := kind(testenv.Context(t), c)
				if err != nil {
					t.Fatal(err)
				}
				return hold
			})
		})
	}
}

// wantLost waits until a hold is lost.
func wantLost(tb testing.TB, hold grant) {
	tb.Helper()
	select {
	case <-hold.Context().Done():
	case <-testenv.Context(tb).Done():
		tb.Fatal("the loss is not noticed")
	}
	if cause := context.Cause(hold.Context()); !errors.Is(cause, locks.ErrLockLost) {
		tb.Errorf("cause %v", cause)
	}
}

func deleteNode(tb testing.TB, client *framework.Client, path string) {
	tb.Helper()
	if err := client.Delete().ForPath(testenv.Context(tb), path); err != nil {
		tb.Fatal(err)
	}
}

func TestHoldNodeDeletedIsLost(t *testing.T) {
	forEveryHold(t, func(t *testing.T, take func(*framework.Client) taken) {
		t.Helper()
		ctx := testenv.Context(t)
		connect := testenv.ConnectString(t)
		client, other := newClient(t, connect), newClient(t, connect)
		hold := take(client)
		deleteNode(t, other, hold.Path())
		wantLost(t, hold)
		if err := hold.giveBack(ctx); err != nil {
			t.Errorf("release of a lost hold: %v", err)
		}
		next := take(other)
		if err := next.giveBack(ctx); err != nil || !errors.Is(context.Cause(next.Context()), locks.ErrReleased) {
			t.Errorf("the next hold ended with %v, release %v", context.Cause(next.Context()), err)
		}
		awaitNothing(t, connect)
	})
}

// The connection is lost before the watch is set, before its answer comes, and when it is set.
func TestHoldNodeDeletedInOutageIsLost(t *testing.T) {
	for name, action := range map[string]curatortest.Action{
		"before the read": curatortest.CutBefore, "after the read": curatortest.CutAfter, "later": 0,
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []retry.Policy{retry.Forever(time.Millisecond), retry.NTimes(0, 0)} {
				chroot := testenv.Chroot(t)
				proxy, connect := newProxy(t, chroot)
				client := newClient(t, connect, framework.WithRetryPolicy(policy),
					framework.WithSessionTimeout(30*time.Second))
				if err := client.BlockUntilConnected(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				direct := newClient(t, testenv.Addr(t)+chroot)
				reads := curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: action}
				if action == 0 {
					reads.Action = curatortest.HoldReply
				}
				read := proxy.Faults().Add(reads)
				hold := acquire(t, testenv.Context(t), locks.NewInterProcessMutex(client, lockPath))
				if err := read.Wait(testenv.Context(t)); err != nil {
					t.Fatal(err)
				}
				read.Release()
				restore := proxy.Faults().RefuseConnects()
				proxy.Faults().CutAll()
				deleteNode(t, direct, hold.Path())
				restore()
				wantLost(t, hold)
				release(t, hold)
				awaitNothing(t, testenv.Addr(t)+chroot)
			}
		})
	}
}

// requestsOfHold returns what a hold of so long asks for beyond its grant, in virtual time.
func requestsOfHold(t *testing.T, long time.Duration) (ops []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext))
		keepLine(t, client)
		hold := acquire(t, t.Context(), locks.NewInterProcessMutex(client, lockPath))
		server.Faults().ResetTrace()
		time.Sleep(long)
		release(t, hold)
		time.Sleep(time.Second)
		for _, e := range server.Faults().Trace() {
			if !e.Reply && e.Op != "ping" {
				ops = append(ops, e.Op)
			}
		}
	})
	return ops
}

func TestHoldShortIsNotWatched(t *testing.T) {
	for long, want := range map[time.Duration][]string{
		9 * time.Millisecond:  {"delete"},
		11 * time.Millisecond: {"getData", "delete"}, // the watch ends with the node
	} {
		if diff := cmp.Diff(want, requestsOfHold(t, long)); diff != "" {
			t.Errorf("requests of a hold of %v (-want +got):\n%s", long, diff)
		}
	}
}

func TestHoldNodeStaysLeavesNoWatch(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	client, proxy := proxied(t, chroot)
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
	testenv.Eventually(t, func() bool { return watchersOf(t, hold.Path()) == 1 }, "the node is watched")
	proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"delete"}, Count: 1, Action: curatortest.ReplyError,
		Err: zk.ErrNoAuth,
	})
	if err := hold.Release(ctx); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("got %v", err)
	}
	testenv.Eventually(t, func() bool { return !strings.Contains(watches(t), hold.Path()) }, "no watch is left")
}

// The read that sets the watch is tried again when the hold has been released, and its node stays.
func TestHoldNodeStaysLeavesNoLateWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		client := newClient(t, server.ConnectString(), framework.WithDialer(server.DialContext),
			framework.WithRetryPolicy(&unevenPolicy{Policy: retry.NTimes(5, 50*time.Millisecond)}))
		cut := server.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.CutBefore})
		hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath))
		if err := cut.Wait(ctx); err != nil { // it is tried again after a second
			t.Fatal(err)
		}
		server.Faults().Add(curatortest.Rule{
			Ops: []string{"delete"}, Count: 1, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		if err := hold.Release(ctx); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("got %v", err)
		}
		server.Faults().ResetTrace()
		time.Sleep(2 * time.Second)
		read := func(e curatortest.TraceEntry) bool { return e.Op == "getData" }
		if !slices.ContainsFunc(server.Faults().Trace(), read) {
			t.Error("the read is not tried again: the test tests nothing")
		}
		watched, err := server.FourLetterWord(ctx, "wchp")
		if err != nil || strings.Contains(watched, hold.Path()) {
			t.Errorf("watches %q, error %v", watched, err)
		}
	})
}

// The nodes of the lock may be written and deleted, not read.
func TestHoldWithoutReadPermissionIsNotWatched(t *testing.T) {
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	_, proxy := proxied(t, chroot)
	client := newClient(t, proxy.Addr()+chroot, framework.WithACLProvider(unreadable{}))
	mu := locks.NewInterProcessMutex(client, lockPath)
	hold := acquire(t, ctx, mu)
	testenv.Eventually(t, func() bool { return slices.Contains(passed(proxy, true), "getData") }, "the read is answered")
	if err := client.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if err := hold.Context().Err(); err != nil || watchersOf(t, hold.Path()) != 0 {
		t.Errorf("the context ended: %v", err)
	}
	deleteNode(t, newClient(t, testenv.Addr(t)+chroot), hold.Path())
	wantLost(t, hold) // by a later read: one of a node that is gone needs no permission
	release(t, hold)
}

// unreadable is a provider of ACLs with which only the line is readable, not its nodes.
type unreadable struct{}

func (unreadable) DefaultACL() []zk.ACL { return builders.OpenACL }

func (unreadable) ACLForPath(path string) []zk.ACL {
	if strings.HasPrefix(path, lockPath+"/") {
		return zk.WorldACL(zk.PermWrite)
	}
	return builders.OpenACL
}

func TestRevocableHoldNodeDeletedIsLost(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath)
	requested := make(chan struct{}, 2)
	mu.MakeRevocable(func(*locks.Hold) { requested <- struct{}{} })
	hold := acquire(t, ctx, mu)
	if err := locks.Revoke(ctx, client, hold.Path()); err != nil {
		t.Fatal(err)
	}
	<-requested
	deleteNode(t, client, hold.Path())
	wantLost(t, hold)
	if len(requested) != 0 {
		t.Error("a second request")
	}
	release(t, hold)
}

func TestOwnerNodeDeletedDoesNotReenter(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	client := newClient(t, testenv.ConnectString(t))
	mu := locks.NewInterProcessMutex(client, lockPath)
	hold := acquire(t, ctx, mu)
	deleteNode(t, client, hold.Path())
	wantLost(t, hold)
	if _, err := mu.Acquire(ctx); !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("got %v", err)
	}
	if mu.IsAcquiredInThisProcess() || mu.IsOwned(ctx) {
		t.Error("it is still held")
	}
	release(t, hold)
	release(t, acquire(t, ctx, mu))
}

// A node that is not ephemeral outlives the session, and so do the hold and its watch.
func TestHoldPersistentNodeIsWatchedInNextSession(t *testing.T) {
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath, locks.WithDriver(persistent{})))
	testenv.Eventually(t, func() bool { return watchersOf(t, hold.Path()) == 1 }, "the node is watched")
	session := client.SessionID()
	if err := testenv.Server(t).ExpireSession(session); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return client.SessionID() != session && watchersOf(t, hold.Path()) == 1 },
		"the node is watched again")
	deleteNode(t, client, hold.Path())
	wantLost(t, hold)
	release(t, hold)
}

// The client has as many operations pending as it may when the node is to be watched.
func TestHoldTooManyPendingIsWatchedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := curatortest.NewServerT(t, curatortest.WithoutPort())
		dialer := framework.WithDialer(server.DialContext)
		bounded := newClient(t, server.ConnectString(), dialer, framework.WithMaxPending(1),
			framework.WithoutQuorumHeartbeats())
		other := newClient(t, server.ConnectString(), dialer)
		hold := acquire(t, ctx, locks.NewInterProcessMutex(bounded, lockPath))
		end := make(chan struct{})
		for range 2 { // the second waits for the callback of the first
			block := func(context.Context, callbacks.Event) { <-end }
			if err := bounded.CheckExists().InBackground(block).ForPath(ctx, "/"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(time.Second)
		deleteNode(t, other, hold.Path())
		if hold.Context().Err() != nil {
			t.Error("the node is watched: the test tests nothing")
		}
		close(end)
		wantLost(t, hold)
		release(t, hold)
	})
}

// single is a driver of a lock whose node always has the same name.
type single struct{ locks.StandardDriver }

func (single) LockName() string { return "single" }

func (single) CreatesTheLock(create builders.Create) builders.Create {
	return create.WithMode(builders.Ephemeral)
}

// Another client deletes the node of a holder and creates one with its name, before the holder watches it.
func TestHoldNodeRecreatedIsLost(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	chroot := testenv.Chroot(t)
	direct := newClient(t, testenv.Addr(t)+chroot)
	client, proxy := proxied(t, chroot)
	watching := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getData"}, Count: 1, Action: curatortest.HoldRequest})
	hold := acquire(t, ctx, locks.NewInterProcessMutex(client, lockPath, locks.WithDriver(single{})))
	if err := watching.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	deleteNode(t, direct, hold.Path())
	next := acquire(t, ctx, locks.NewInterProcessMutex(direct, lockPath, locks.WithDriver(single{})))
	watching.Release()
	wantLost(t, hold)
	if err := next.Context().Err(); err != nil {
		t.Errorf("the next one: %v", err)
	}
	release(t, next)
}

func TestHoldNodeDeletedWhileReadsAreRefusedIsLost(t *testing.T) {
	t.Parallel()
	testclient.DeletedWhileReadsAreRefused(t, func(t *testing.T, client *framework.Client) (node string, lost func()) {
		t.Helper()
		hold := acquire(t, testenv.Context(t), locks.NewInterProcessMutex(client, lockPath))
		return hold.Path(), func() { wantLost(t, hold) }
	})
}

func TestHoldWatchRemovedNodeDeletedIsLost(t *testing.T) {
	t.Parallel()
	forEveryHold(t, func(t *testing.T, take func(*framework.Client) taken) {
		client := newClient(t, testenv.ConnectString(t))
		hold := take(client)
		for range 2 {
			removeWatches(t, client, hold.Path())
		}
		deleteNode(t, client, hold.Path())
		wantLost(t, hold)
	})
}

// removeWatches waits for a watch of a node and removes all of them, as another part of the program can.
func removeWatches(t *testing.T, client *framework.Client, path string) {
	t.Helper()
	testenv.Eventually(t, func() bool {
		return client.Watches().RemoveAll().ForPath(testenv.Context(t), path) == nil
	}, "a watch of "+path)
}
