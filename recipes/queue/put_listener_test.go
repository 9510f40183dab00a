package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// A listener that puts waits for a place in the window, which others leave meanwhile.
func TestPutListenerPuts(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).PutWindow(1).BuildQueue()))
		var heard []string
		q.AddPutListener(func(ctx context.Context, ev queue.PutEvent[string]) {
			item := ev.Items[0]
			heard = append(heard, item)
			if !strings.HasSuffix(item, "again") {
				for range 3 {
					if err := q.Put(ctx, item+" again"); err != nil {
						t.Error(err)
					}
				}
			}
		})
		putItems(t, q, "a", "b", "c")
		must(t, q.FlushPuts(ctx)) // the listeners of a, b and c were called
		must(t, q.FlushPuts(ctx)) // and of what they have put
		count := map[string]int{}
		for _, item := range heard {
			count[item]++
		}
		want := map[string]int{"a": 1, "b": 1, "c": 1, "a again": 3, "b again": 3, "c again": 3}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Errorf("heard of (-want +got):\n%s", diff)
		}
	})
}

// Puts do not wait for a listener. A flush does, unless it is called by one.
func TestSlowPutListener(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		place := curatortest.NewServerT(t, curatortest.WithoutPort())
		ctx, client := testenv.Context(t), clientAt(t, place, "")
		q := start(t, built(builder(t, client, nil).PutWindow(2).BuildQueue()))
		goOn, inside := make(chan struct{}), make(chan error, 10)
		q.AddPutListener(func(ctx context.Context, ev queue.PutEvent[string]) {
			<-goOn
			inside <- q.FlushPuts(ctx)
		})
		items := numbered(10)
		putItems(t, q, items...)
		x, err := q.PutAsync(ctx, "last")
		must(t, err)
		_, err = x.Wait(ctx)
		must(t, err)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := q.FlushPuts(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush before the listeners are called: %v", err)
		}
		flushed := make(chan error)
		go func() { flushed <- q.FlushPuts(ctx) }()
		for range items {
			goOn <- struct{}{}
			must(t, <-inside)
		}
		synctest.Wait()
		select {
		case err := <-flushed:
			t.Errorf("flush before the last call of a listener: %v", err)
		default:
		}
		close(goOn)
		must(t, <-flushed)
		must(t, <-inside)
	})
}

func TestPutListenerFlushOnChildGoroutineDoesNotWaitForListener(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).BuildQueue()))
		flushed := make(chan error, 1)
		q.AddPutListener(func(ctx context.Context, _ queue.PutEvent[string]) {
			child := make(chan error)
			go func() { child <- q.FlushPuts(ctx) }()
			flushed <- <-child
		})
		must(t, q.Put(testenv.Context(t), "a"))
		select {
		case err := <-flushed:
			must(t, err)
		case <-time.After(callbackLimit):
			t.Fatal("the listener waits for itself")
		}
	})
}

// A listener that closes the queue does not wait for itself.
func TestPutListenerClosesTheQueue(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		q := built(builder(t, client, nil).FinalFlushTime(time.Hour).BuildQueue())
		must(t, q.Start())
		closed := make(chan error, 1)
		q.AddPutListener(func(context.Context, queue.PutEvent[string]) { closed <- q.Close() })
		must(t, q.Put(testenv.Context(t), "a"))
		select {
		case err := <-closed:
			must(t, err)
		case <-time.After(callbackLimit):
			t.Error("the listener waits for itself")
		}
	})
}

// The outcomes that Close waits for come with a context that has not ended.
func TestPutListenerContextEndsAfterLastOutcome(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := built(builder(t, client, nil).FinalFlushTime(time.Hour).BuildQueue())
		must(t, q.Start())
		var contexts []context.Context
		q.AddPutListener(func(ctx context.Context, _ queue.PutEvent[string]) {
			if contexts = append(contexts, ctx); ctx.Err() != nil {
				t.Errorf("called with a context that has ended: %v", context.Cause(ctx))
			}
		})
		hold := place.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Action: curatortest.HoldRequest, Count: 1})
		type key struct{}
		putting, cancel := context.WithCancel(context.WithValue(ctx, key{}, "value"))
		for _, item := range numbered(5) {
			must(t, q.Put(putting, item))
		}
		cancel()
		must(t, hold.Wait(ctx))
		closed := closing(q)
		hold.Release()
		must(t, <-closed)
		if len(contexts) != 5 {
			t.Fatalf("%d calls", len(contexts))
		}
		for _, ctx := range contexts {
			if cause := context.Cause(ctx); !errors.Is(cause, queue.ErrClosed) {
				t.Errorf("after Close the cause is %v", cause)
			}
			if v := ctx.Value(key{}); v != "value" {
				t.Errorf("the value of the put is %v", v)
			}
		}
	})
}

func TestPutListenerThatWaitsForItsContextEndsWithFinalFlushTime(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		q := built(builder(t, client, nil).FinalFlushTime(time.Second).BuildQueue())
		must(t, q.Start())
		entered, returned := make(chan struct{}), make(chan struct{})
		q.AddPutListener(func(ctx context.Context, _ queue.PutEvent[string]) {
			close(entered)
			<-ctx.Done()
			close(returned)
		})
		must(t, q.Put(testenv.Context(t), "a"))
		<-entered
		wantClosedInTime(t, q)
		<-returned
	})
}
