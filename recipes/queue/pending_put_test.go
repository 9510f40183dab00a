package queue_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// refuseOne has the next create of a single item refused.
func refuseOne(place testenv.Place) {
	place.Faults().Add(curatortest.Rule{
		Ops: []string{"create2"}, Count: 1, Action: curatortest.ReplyError,
		Err: zk.ErrNoAuth,
	})
}

func TestPendingPutHasTheOutcomeOfItsOwnItem(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).BuildQueue()))
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		held := place.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldRequest})
		refuseOne(place)
		fails, err := q.PutAsync(ctx, "a")
		must(t, err)
		must(t, held.Wait(ctx))
		succeeds, err := q.PutAsync(ctx, "b")
		must(t, err)
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if path, err := fails.Wait(short); path != "" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before the answer: %q, %v", path, err)
		}
		select {
		case <-fails.Done():
			t.Error("done before the answer")
		default:
		}
		held.Release()
		var item *queue.ItemError
		if path, err := fails.Wait(ctx); path != "" || !errors.Is(err, zk.ErrNoAuth) || !errors.As(err, &item) ||
			item.Path != queuePath {
			t.Errorf("the one that fails: %q, %v", path, err)
		}
		if path, err := succeeds.Wait(ctx); !strings.HasPrefix(path, queuePath+"/queue-") || err != nil {
			t.Errorf("the other: %q, %v", path, err)
		}
		<-fails.Done()
		<-succeeds.Done()
		done, cancelDone := context.WithCancel(ctx)
		cancelDone()
		if _, err := succeeds.Wait(done); err != nil {
			t.Errorf("what is known is returned at once: %v", err)
		}
		if err := q.FlushPuts(ctx); !errors.Is(err, zk.ErrNoAuth) { // although Wait has returned it
			t.Errorf("flush: %v", err)
		}
		must(t, q.FlushPuts(ctx))
	})
}

func TestEveryKindOfQueueHasPendingPuts(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	client := newClient(t, testenv.ConnectString(t))
	b := builder(t, client, nil)
	plain, priority := start(t, built(b.BuildQueue())), start(t, built(b.BuildPriorityQueue(0)))
	delay, ids := start(t, built(b.BuildDelayQueue())), start(t, built(b.BuildIDQueue()))
	for prefix, put := range map[string]func() (*queue.PendingPut, error){
		"queue-0":                func() (*queue.PendingPut, error) { return plain.PutAsync(ctx, "a") },
		"queue-100000007":        func() (*queue.PendingPut, error) { return priority.PutAsync(ctx, "a", 7) },
		"queue-|000003E8|":       func() (*queue.PendingPut, error) { return delay.PutAsync(ctx, "a", time.UnixMilli(1000)) },
		"queue-|some_id|0000000": func() (*queue.PendingPut, error) { return ids.PutAsync(ctx, "a", "some/id") },
	} {
		x, err := put()
		must(t, err)
		if path, err := x.Wait(ctx); err != nil || !strings.HasPrefix(path, queuePath+"/"+prefix) {
			t.Errorf("%q, %v, want %s", path, err, prefix)
		}
	}
	if x, err := priority.PutAsync(ctx, "a", math.MaxInt32+1); x != nil || err == nil {
		t.Errorf("a priority that is too large: %v, %v", x, err)
	}
	if x, err := ids.PutAsync(ctx, "a", "\x00"); x != nil || err == nil {
		t.Errorf("an id that no path can have: %v, %v", x, err)
	}
	unstarted := built(b.BuildQueue())
	if x, err := unstarted.PutAsync(ctx, "a"); x != nil || !errors.Is(err, queue.ErrNotStarted) {
		t.Errorf("before the start: %v, %v", x, err)
	}
}

// All flushes that wait when a put fails report it, and one that begins while another still waits reports what that
// one does; after that nobody reports it.
func TestFailureIsReportedByEveryFlushUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		ctx, client := testenv.Context(t), clientAt(t, place, "")
		q := start(t, built(builder(t, client, nil).BuildQueue()))
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		refuseOne(place)
		fails, err := q.PutAsync(ctx, "fails")
		must(t, err)
		_, err = fails.Wait(ctx)
		if !errors.Is(err, zk.ErrNoAuth) {
			t.Fatalf("put: %v", err)
		}
		held := place.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldRequest})
		putItems(t, q, "slow")
		must(t, held.Wait(ctx))
		flushed := make(chan error)
		for range 3 {
			go func() { flushed <- q.FlushPuts(ctx) }()
		}
		synctest.Wait() // all have begun
		held.Release()
		for range 3 {
			if err := <-flushed; !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("flush: %v", err)
			}
		}
		must(t, q.FlushPuts(ctx))
	})
}

// A flush that has begun before another reports, and ends after it, has the failures of before and of after.
func TestFlushReportsWhatFailsBehindAnotherFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		ctx, client := testenv.Context(t), clientAt(t, place, "")
		q := start(t, built(builder(t, client, nil).BuildQueue()))
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		creates := []string{"create2"}
		one := place.Faults().Add(curatortest.Rule{Ops: creates, Count: 1, Action: curatortest.HoldRequest})
		refuseOne(place)
		putItems(t, q, "a")
		must(t, one.Wait(ctx))
		early := make(chan error)
		go func() { early <- q.FlushPuts(ctx) }()
		synctest.Wait()
		two := place.Faults().Add(curatortest.Rule{Ops: creates, Count: 1, Action: curatortest.HoldRequest})
		refuseOne(place)
		putItems(t, q, "b")
		late := make(chan error)
		go func() { late <- q.FlushPuts(ctx) }()
		synctest.Wait()
		one.Release()
		if err := <-early; !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "1 puts") {
			t.Errorf("the early flush: %v", err)
		}
		must(t, two.Wait(ctx))
		two.Release()
		if err := <-late; !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "2 puts") {
			t.Errorf("the late flush: %v", err)
		}
		must(t, q.FlushPuts(ctx))
	})
}
