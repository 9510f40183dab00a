package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

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

// The read that watches the node of a hold is refused for a while. Meanwhile another client deletes the node.
func TestRefusalThatPassesDelaysTheLossOfAHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := curatortest.NewServerT(t, curatortest.InMemory())
		dial := framework.WithDialer(server.DialContext)
		refusal := server.Faults().Add(curatortest.Rule{
			Ops: []string{"getData"}, Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
		})
		ctx := testenv.Context(t)
		hold := acquire(t, ctx, locks.NewInterProcessMutex(newClient(t, server.ConnectString(), dial), lockPath))
		if err := refusal.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		deleteNode(t, newClient(t, server.ConnectString(), dial), hold.Path())
		refusal.Remove()
		wantLost(t, hold)
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
