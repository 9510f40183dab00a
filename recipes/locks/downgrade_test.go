package locks_test

import (
	"errors"
	"path"
	"testing"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/locks"
)

// A reader's node that is deleted before the line is listed grants nothing, though the writer's node is there.
func TestDowngradeNodeDeletedIsLost(t *testing.T) {
	ctx := locks.WithOwner(testenv.Context(t))
	chroot := testenv.Chroot(t)
	proxy, connect := newProxy(t, chroot)
	direct := newClient(t, testenv.Addr(t)+chroot)
	rw := locks.NewInterProcessReadWriteLock(newClient(t, connect), lockPath)
	writing := acquire(t, ctx, rw.WriteLock())
	list := proxy.Faults().Add(curatortest.Rule{Ops: []string{"getChildren2"}, Count: 1, Action: curatortest.HoldRequest})
	failed := make(chan error, 1)
	go func() {
		_, err := rw.ReadLock().Acquire(ctx)
		failed <- err
	}()
	if err := list.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	awaitContenders(t, direct, 2)
	nodes, err := direct.GetChildren().ForPath(ctx, lockPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if node != path.Base(writing.Path()) {
			if err := direct.Delete().ForPath(ctx, path.Join(lockPath, node)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list.Release()
	if err := <-failed; !errors.Is(err, locks.ErrLockLost) {
		t.Errorf("got %v of %d nodes", err, len(nodes))
	}
	release(t, writing)
}

func TestDowngradeLostReplyGrantsReadLock(t *testing.T) {
	for _, action := range []curatortest.Action{curatortest.CutBefore, curatortest.CutAfter} {
		t.Run(action.String(), func(t *testing.T) {
			ctx := locks.WithOwner(testenv.Context(t))
			chroot := testenv.Chroot(t)
			proxy, connect := newProxy(t, chroot)
			rw := locks.NewInterProcessReadWriteLock(newClient(t, connect), lockPath)
			writing := acquire(t, ctx, rw.WriteLock())
			proxy.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: action})
			reading := acquire(t, ctx, rw.ReadLock())
			release(t, writing)
			release(t, reading)
			awaitNothing(t, testenv.Addr(t)+chroot)
		})
	}
}
