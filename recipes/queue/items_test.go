package queue_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

type puller interface {
	Items(ctx context.Context) iter.Seq2[queue.Item[string], error]
}

// pullAll pulls the items of a queue, one after the other, and is done with each.
func pullAll(ctx context.Context, q puller) (next func(tb testing.TB) string, stop func()) {
	pull, stop := iter.Pull2(q.Items(ctx))
	return func(tb testing.TB) string {
		tb.Helper()
		item, err, ok := pull()
		if !ok {
			tb.Fatal("no more items")
		}
		must(tb, err)
		must(tb, item.Done(ctx))
		return item.Value
	}, stop
}

func TestItemsArePulledOneByOne(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		client := newClient(t, connect)
		q := start(t, built(mode(builder(t, client, nil)).BuildQueue()))
		want := numbered(10)
		must(t, q.PutMulti(ctx, want[:3]...))
		for _, item := range want[3:9] {
			must(t, q.Put(ctx, item))
		}
		next, stop := pullAll(ctx, q)
		defer stop()
		var got []string
		for range 9 {
			got = append(got, next(t))
		}
		go func() {
			if err := q.Put(ctx, want[9]); err != nil { // while it is waited for
				t.Error(err)
			}
		}()
		got = append(got, next(t))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		awaitNothing(t, connect)
	})
}

func TestPullingEndsWithItsContextAndWithClose(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		connect := testenv.ConnectString(t)
		client := newClient(t, connect)
		q := start(t, built(mode(builder(t, client, nil)).BuildQueue()))
		ctx, cancel := context.WithCancel(testenv.Context(t))
		must(t, client.BlockUntilConnected(ctx))
		cancel()
		for _, err := range q.Items(ctx) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		ended := make(chan error)
		go func() {
			for _, err := range q.Items(testenv.Context(t)) {
				ended <- err
			}
		}()
		must(t, q.Close())
		if err := <-ended; !errors.Is(err, queue.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestItemThatIsNotDoneStaysLockedAndGoesToAnother(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	first := built(builder(t, newClient(t, connect), nil).LockPath(lockPath).BuildQueue())
	must(t, first.Start())
	must(t, first.PutMulti(ctx, "a", "b"))
	must(t, first.Put(ctx, "c"))
	var held []queue.Item[string]
	for item, err := range first.Items(ctx) {
		must(t, err)
		if held = append(held, item); len(held) == 3 {
			break
		}
	}
	must(t, held[0].Done(ctx))
	must(t, held[0].Done(ctx)) // which does nothing
	second := start(t, built(builder(t, newClient(t, connect), nil).LockPath(lockPath).BuildQueue()))
	next, stop := pullAll(ctx, second)
	defer stop()
	must(t, held[2].Requeue(ctx))
	if got := next(t); got != "c" {
		t.Errorf("got %q, want what was put back: the others are locked", got)
	}
	must(t, first.Close())
	if held[1].Context().Err() == nil {
		t.Error("the work on an item of a closed queue has not ended")
	}
	if err := held[1].Done(ctx); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("done after close: %v", err)
	}
	// Of items that were put together none is deleted before all are done.
	if a, b := next(t), next(t); a != "a" || b != "b" {
		t.Errorf("got %q and %q", a, b)
	}
	awaitNothing(t, connect)
}

func TestItemOfALostSessionIsAnothers(t *testing.T) {
	t.Parallel()
	ctx, connect := testenv.Context(t), testenv.ConnectString(t)
	client := newClient(t, connect)
	q := start(t, built(builder(t, client, nil).LockPath(lockPath).BuildQueue()))
	must(t, q.Put(ctx, "a"))
	for item, err := range q.Items(ctx) {
		must(t, err)
		must(t, testenv.Server(t).ExpireSession(client.SessionID()))
		<-item.Context().Done()
		if err := context.Cause(item.Context()); !errors.Is(err, queue.ErrLockLost) {
			t.Errorf("the work ended with %v", err)
		}
		next, stop := pullAll(ctx, q) // also to the same queue, though it holds it still
		defer stop()
		if got := next(t); got != "a" {
			t.Errorf("got %q", got)
		}
		if err := item.Requeue(ctx); !errors.Is(err, queue.ErrLockLost) {
			t.Errorf("requeue: %v", err)
		}
		break
	}
	awaitNothing(t, connect)
}

func TestWhatIsPutBackKeepsItsName(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx, connect := testenv.Context(t), testenv.ConnectString(t)
		q := start(t, built(mode(builder(t, newClient(t, connect), nil)).BuildIDQueue()))
		must(t, q.PutMulti(ctx, "x/y", "a", "b", "c"))
		var got []string
		for item, err := range q.Items(ctx) {
			must(t, err)
			if item.Info.ID != "x_y" {
				t.Errorf("%q has the id %q", item.Value, item.Info.ID)
			}
			got = append(got, item.Value)
			if len(got) <= 2 {
				must(t, item.Requeue(ctx))
			} else {
				must(t, item.Done(ctx))
			}
			if len(got) == 5 {
				break
			}
		}
		if diff := cmp.Diff([]string{"a", "b", "c", "a", "b"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		awaitNothing(t, connect)
	})
}
