package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// resultPath is what consumers write with the fence of an item.
const resultPath = "/result"

// pullLocked pulls the first item of a queue with locks.
func pullLocked(t *testing.T, client *framework.Client) (item queue.Item[string], end func()) {
	t.Helper()
	q := start(t, built(builder(t, client, nil).LockPath(lockPath).OnError(newReports().add).BuildQueue()))
	ctx, cancel := context.WithCancel(testenv.Context(t))
	pulled, done, over := make(chan queue.Item[string], 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for item, err := range q.Items(ctx) {
			if err != nil {
				return
			}
			pulled <- item
			<-done
			return
		}
	}()
	end = func() { cancel(); close(done); <-over }
	select {
	case item = <-pulled:
	case <-over:
		t.Fatal("no item")
	}
	return item, end
}

// result creates the node of the result.
func result(client *framework.Client, data string) builders.TransactionOperation {
	return client.TransactionOp().Create().ForPath(resultPath, []byte(data))
}

func TestFenceWritesWhileTheItemIsOurs(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.Addr(t)+testenv.Chroot(t)
	client := newClient(t, connect)
	wrote := make(chan error, 1)
	q := start(t, built(builder(t, client, func(ctx context.Context, item string) error {
		_, err := queue.FenceOf(ctx).Transaction(ctx, result(client, item))
		wrote <- err
		return nil
	}).LockPath(lockPath).BuildQueue()))
	putAll(t, q, "a")
	must(t, <-wrote)
	if data, err := client.GetData().ForPath(ctx, resultPath); string(data) != "a" || err != nil {
		t.Errorf("data %q, error %v", data, err)
	}
	awaitNothing(t, connect) // and no fence
}

// TestFenceOfALostItemRefusesWrites has a second consumer hold the item, under a lock of the same name.
func TestFenceOfALostItemRefusesWrites(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.Addr(t)+testenv.Chroot(t)
	first, second := newClient(t, connect), newClient(t, connect)
	putAll(t, start(t, built(builder(t, second, nil).LockPath(lockPath).BuildQueue())), "a")
	lost, endFirst := pullLocked(t, first)
	defer endFirst()
	fence := queue.FenceOf(lost.Context())
	guarded, err := fence.Operation(ctx)
	must(t, err)
	view, err := fence.Client(ctx)
	must(t, err)
	must(t, testenv.Server(t).ExpireSession(first.SessionID()))
	held, endSecond := pullLocked(t, second)
	defer endSecond()

	// Another client sends what the first has prepared: the server refuses it.
	_, err = second.Transaction().ForOperations(ctx, guarded, result(second, "late"))
	if !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("transaction with the operation of a lost fence: %v", err)
	}
	<-lost.Context().Done()
	if _, err := view.Create().ForPath(ctx, resultPath, nil); !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("create with the client of a lost fence: %v", err)
	}
	if _, err := fence.Transaction(ctx, result(first, "late")); !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("transaction of a lost fence: %v", err)
	}
	_, err = queue.FenceOf(held.Context()).Transaction(ctx, result(second, "a"))
	must(t, err)
	must(t, held.Done(ctx))
}

func TestFenceOfASettledItemRefusesWrites(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.Addr(t)+testenv.Chroot(t)
	client := newClient(t, connect)
	putAll(t, start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue())), "a", "b")
	used, end := pullLocked(t, client)
	guarded, err := queue.FenceOf(used.Context()).Operation(ctx)
	must(t, err)
	must(t, used.Done(ctx))
	end()
	if _, err := queue.FenceOf(used.Context()).Client(ctx); err == nil {
		_, err = queue.FenceOf(used.Context()).Transaction(ctx, result(client, "late"))
		if !errors.Is(err, queue.ErrLockLost) {
			t.Errorf("transaction of a settled item: %v", err)
		}
	}
	testenv.Eventually(t, func() bool { return len(children(t, connect, lockPath)) == 0 }, "the fence is gone")
	_, err = client.Transaction().ForOperations(ctx, guarded, result(client, "late"))
	if !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("transaction with the operation of a settled item: %v", err)
	}

	unused, end := pullLocked(t, client)
	must(t, unused.Requeue(ctx))
	end()
	if _, err := queue.FenceOf(unused.Context()).Operation(ctx); !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("first use behind the end: %v", err)
	}
}

// TestFenceOutlivesLostReplies cuts the connection before and after each request of the first use.
func TestFenceOutlivesLostReplies(t *testing.T) {
	t.Parallel()
	testenv.EachCut(t, func(t *testing.T, action curatortest.Action, skip int) (hit bool) {
		ctx, chroot := testenv.Context(t), testenv.Chroot(t)
		proxy, connect := newProxy(t, chroot)
		client := newClient(t, connect)
		putAll(t, start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue())), "a")
		item, end := pullLocked(t, client)
		cut := proxy.Faults().Add(curatortest.Rule{
			Ops:  []string{"sync", "getData", "create", "create2", "exists"},
			Skip: skip, Count: 1, Action: action, MayMiss: skip > 0,
		})
		if _, err := queue.FenceOf(item.Context()).Operation(ctx); err != nil {
			t.Errorf("%v of request %d: %v", action, skip, err)
		}
		hit = cut.Hits() > 0
		must(t, item.Done(ctx))
		end()
		testenv.Eventually(t, func() bool { return len(children(t, testenv.Addr(t)+chroot, lockPath)) == 0 },
			"nothing is left")
		return hit
	})
}

func TestFenceWithoutALock(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	fence := queue.FenceOf(ctx)
	if fence != nil {
		t.Error("a fence of nothing")
	}
	if _, err := fence.Operation(ctx); !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("operation: %v", err)
	}
	if _, err := fence.Transaction(ctx); !errors.Is(err, queue.ErrLockLost) {
		t.Errorf("transaction: %v", err)
	}
}

// TestFenceOfItemThatIsSettledDuringOutage has the first use of a fence wait for a connection.
func TestFenceOfItemThatIsSettledDuringOutage(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		putAll(t, start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue())), "a")
		item, end := pullLocked(t, client)
		restore := outage(t, place.Faults(), client)
		used := make(chan error, 1)
		go func() {
			_, err := queue.FenceOf(item.Context()).Operation(ctx)
			used <- err
		}()
		<-time.After(100 * time.Millisecond)
		done := make(chan error, 1)
		go func() { done <- item.Done(ctx) }()
		select {
		case err := <-used:
			if !errors.Is(err, queue.ErrLockLost) {
				t.Errorf("fence of a settled item: %v", err)
			}
		case <-time.After(testenv.InTime(time.Second)):
			t.Error("the fence of a settled item waits for a connection")
		}
		restore()
		must(t, <-done)
		end()
		awaitEmpty(t, client)
	})
}

// TestFenceIsDeletedAfterLostConnections cuts the connection before each of the first deletions of the node.
func TestFenceIsDeletedAfterLostConnections(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, others, client := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		putAll(t, start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue())), "a")
		item, end := pullLocked(t, client)
		_, err := queue.FenceOf(item.Context()).Operation(ctx)
		must(t, err)
		place.Faults().Add(curatortest.Rule{
			Ops: []string{"delete"}, SessionID: client.SessionID(), Count: 30, Action: curatortest.CutBefore, MayMiss: true,
		})
		must(t, item.Done(ctx))
		end()
		awaitEmpty(t, others)
	})
}
