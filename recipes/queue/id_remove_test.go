package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// Every item of an id is removed and counted, or the error says that the outcome is not known, whichever request or
// answer is lost.
func TestRemoveWithLostReplies(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
			return removeIDWithCut(t, mode, action, k)
		})
	})
}

func removeIDWithCut(t *testing.T, mode modifier, action curatortest.Action, k int) (hit bool) {
	t.Helper()
	const n = 3
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := start(t, built(mode(builder(t, client, nil)).BuildIDQueue()))
		for range n {
			must(t, q.Put(ctx, "a", "x"))
		}
		must(t, q.Put(ctx, "other", "y"))
		must(t, q.FlushPuts(ctx))
		rule := place.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: true})
		removed, err := q.Remove(ctx, "x")
		left := len(itemsOf(t, client)) - 1
		switch {
		case err == nil && removed != n:
			t.Errorf("%v of request %d: removed %d without an error", action, k, removed)
		case err != nil && !errors.Is(err, queue.ErrUncertain):
			t.Errorf("%v of request %d: %v", action, k, err)
		case err != nil && removed+left != n-1:
			t.Errorf("%v of request %d: %d removed, %d left: %v", action, k, removed, left, err)
		}
		hit = rule.Hits() > 0
	})
	return hit
}

// What is not listed is not removed: the path was made anew, with nodes of the same names.
func TestRemoveLeavesWhatWasPutAfterIt(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		q, producer := start(t, built(builder(t, client, nil).BuildIDQueue())),
			start(t, built(builder(t, other, nil).BuildIDQueue()))
		must(t, producer.Put(ctx, "old", "x"))
		must(t, producer.FlushPuts(ctx))
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"getChildren2"}, SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldReply,
		})
		type result struct {
			n   int
			err error
		}
		removed := make(chan result)
		go func() {
			n, err := q.Remove(ctx, "x")
			removed <- result{n, err}
		}()
		must(t, held.Wait(ctx))
		deletePath(t, other, queuePath)
		must(t, producer.Put(ctx, "new", "x"))
		must(t, producer.FlushPuts(ctx))
		held.Release()
		if r := <-removed; r.n != 0 || r.err != nil {
			t.Errorf("removed %d, %v", r.n, r.err)
		}
	})
}

// The end of the context while the answer is on its way leaves the outcome open.
func TestRemoveWhoseContextEnds(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		ctx, cancel := context.WithCancel(testenv.Context(t))
		q := start(t, built(builder(t, client, nil).BuildIDQueue()))
		must(t, q.Put(ctx, "a", "x"))
		must(t, q.FlushPuts(ctx))
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"multi", "delete"}, Count: 1, Action: curatortest.DelayReply, Delay: 3 * time.Second,
		})
		go func() {
			_ = held.Wait(ctx)
			cancel()
		}()
		if n, err := q.Remove(ctx, "x"); n != 0 || !errors.Is(err, queue.ErrUncertain) || !errors.Is(err, context.Canceled) {
			t.Errorf("removed %d, %v", n, err)
		}
	})
}

// A missing lock path is created, because items without one are not locked.
func TestRemoveWithoutTheLockPathCreatesIt(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildIDQueue()))
		must(t, q.Put(ctx, "a", "x"))
		must(t, q.FlushPuts(ctx))
		must(t, client.Delete().ForPath(ctx, lockPath))
		if n, err := q.Remove(ctx, "x"); n != 1 || err != nil {
			t.Errorf("removed %d, %v", n, err)
		}
	})
}
