package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// sized returns items of so many bytes each, which begin with their numbers.
func sized(n, bytes int) []string {
	items := numbered(n)
	for i, item := range items {
		items[i] = item + strings.Repeat(".", bytes-len(item))
	}
	return items
}

// short returns the beginnings of items.
func short(items []string) []string {
	var out []string
	for _, item := range items {
		out = append(out, fmt.Sprintf("%.12s of %d", strings.TrimRight(item, "."), len(item)))
	}
	return out
}

// putBatches puts items while the first answer is held back, so that those behind the second go in batches.
func putBatches(t *testing.T, place testenv.Place, q *queue.DistributedQueue[string], items ...string) {
	t.Helper()
	ctx := testenv.Context(t)
	putItems(t, q, "first")
	must(t, q.FlushPuts(ctx))
	held := place.Faults().Add(curatortest.Rule{Ops: []string{"create2"}, Count: 1, Action: curatortest.HoldReply})
	putItems(t, q, items[0])
	must(t, held.Wait(ctx))
	putItems(t, q, items[1:]...)
	held.Release()
}

// What the client does not send because of its size goes in smaller batches, and what it does not send alone is an
// error of that put.
func TestBatchIsNoLargerThanWhatTheClientSends(t *testing.T) {
	t.Parallel()
	tooLarge := strings.Repeat("x", 20_000)
	tests := map[string][]string{
		"many bytes":    sized(60, 1000),
		"one too large": slices.Insert(sized(60, 100), 30, tooLarge),
	}
	for name, items := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client := testenv.Context(t), clientAt(t, place, chroot, framework.WithMaxBuffer(10_000))
				q := built(builder(t, client, nil).PutWindow(100).BuildQueue())
				must(t, q.Start())
				events := outcomes(q)
				putBatches(t, place, q, items...)
				err := q.FlushPuts(ctx)
				if slices.Contains(items, tooLarge) != errors.Is(err, framework.ErrRequestTooLarge) {
					t.Errorf("flush: %v", err)
				}
				want := slices.DeleteFunc(slices.Clone(items), func(s string) bool { return s == tooLarge })
				want = slices.Insert(want, 0, "first")
				if diff := cmp.Diff(short(want), short(itemsOf(t, client))); diff != "" {
					t.Errorf("in the queue (-want +got):\n%s", diff)
				}
				for range len(items) + 1 {
					ev := <-events
					if failed := ev.Err != nil; failed != (ev.Items[0] == tooLarge) {
						t.Errorf("%.12s: %v", ev.Items[0], ev.Err)
					}
				}
				must(t, q.Close())
			})
		})
	}
}

// Long names count as bytes do.
func TestBatchOfLongNamesIsBounded(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot, framework.WithMaxBuffer(20_000))
		q := start(t, built(builder(t, client, nil).PutWindow(200).BuildIDQueue()))
		id := strings.Repeat("i", 2000)
		for i := range 100 {
			must(t, q.Put(ctx, fmt.Sprint(i), id))
		}
		must(t, q.FlushPuts(ctx))
		if n, err := q.Remove(ctx, id); n != 100 || err != nil {
			t.Errorf("%d in the queue, %v", n, err)
		}
	})
}

// onServerOf runs a test on a server that reads requests of at most so many bytes: a larger one ends its connection.
func onServerOf(t *testing.T, bytes int, test func(t *testing.T, place testenv.Place)) {
	t.Helper()
	if !testenv.Real() {
		synctest.Test(t, func(t *testing.T) {
			test(t, curatortest.NewServerT(t, curatortest.WithoutPort(), curatortest.WithMaxBuffer(bytes)))
		})
		return
	}
	server, err := curatortest.NewRealServer(curatortest.WithSystemProperty("jute.maxbuffer", fmt.Sprint(bytes)))
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	test(t, testenv.ProxyPlace(t, server.Addr()))
}

// A server with a smaller buffer than the client expects closes the connection for a request that is larger. What fits
// gets there in smaller batches and in order, the item that does not fit is reported.
func TestServerWithASmallerBuffer(t *testing.T) {
	t.Parallel()
	const buffer = 8 << 10
	tooLarge := strings.Repeat("x", 2*buffer)
	tests := map[string]struct {
		items       []string
		connections int
	}{
		"all fit alone":      {sized(100, 1000), 12},
		"one does not":       {slices.Insert(sized(100, 100), 50, tooLarge), 25},
		"one does not, last": {append(sized(20, 100), tooLarge), 25},
		"two do not":         {slices.Insert(sized(100, 100), 50, tooLarge, tooLarge), 35},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServerOf(t, buffer, func(t *testing.T, place testenv.Place) {
				ctx, client := testenv.Context(t), clientAt(t, place, "")
				q := built(builder(t, client, nil).LockPath(lockPath).PutWindow(200).BuildQueue())
				must(t, q.Start())
				events := outcomes(q)
				place.Faults().ResetTrace()
				putBatches(t, place, q, tt.items...)
				_ = q.FlushPuts(ctx) // the listener has the outcomes
				want := slices.DeleteFunc(slices.Clone(tt.items), func(s string) bool { return s == tooLarge })
				want = slices.Insert(want, 0, "first")
				if diff := cmp.Diff(short(want), short(withoutRepeats(itemsOf(t, client)))); diff != "" {
					t.Errorf("in the queue (-want +got):\n%s", diff)
				}
				for range len(tt.items) + 1 {
					checkOutcome(t, <-events, tooLarge)
				}
				if n := countOf(place.Faults(), "connect"); n > tt.connections {
					t.Errorf("%d connections", n)
				}
				_ = q.Close()
			})
		})
	}
}

// checkOutcome checks the outcome of a put, which has to fail if its item is too large for the server.
func checkOutcome(t *testing.T, ev queue.PutEvent[string], tooLarge string) {
	t.Helper()
	if ev.Items[0] != tooLarge {
		if ev.Err != nil {
			t.Errorf("%.12s: %v", ev.Items[0], ev.Err)
		}
		return
	}
	var item *queue.ItemError
	if !errors.Is(ev.Err, queue.ErrUncertain) || !errors.Is(ev.Err, framework.ErrConnectionLoss) ||
		!errors.As(ev.Err, &item) || !strings.Contains(string(item.Data), tooLarge) ||
		!strings.Contains(ev.Err.Error(), "jute.maxbuffer") {
		t.Errorf("the item that is too large: %v", ev.Err)
	}
}

// withoutRepeats leaves out what is there a second time.
func withoutRepeats(items []string) (once []string) {
	for _, item := range items {
		if !slices.Contains(once, item) {
			once = append(once, item)
		}
	}
	return once
}

// Without a lock path nothing is put twice: what is lost with the connection is reported at once, and the puts behind
// it go on. A put whose reply was lost is ErrUncertain, and its item may be in the queue.
func TestServerWithASmallerBufferAtMostOnce(t *testing.T) {
	t.Parallel()
	const buffer = 8 << 10
	tooLarge := strings.Repeat("x", 2*buffer)
	onServerOf(t, buffer, func(t *testing.T, place testenv.Place) {
		ctx, client := testenv.Context(t), clientAt(t, place, "")
		q := built(builder(t, client, nil).PutWindow(200).BuildQueue())
		must(t, q.Start())
		events := outcomes(q)
		putBatches(t, place, q, slices.Insert(sized(10, 20), 5, tooLarge)...)
		if err := q.FlushPuts(ctx); !errors.Is(err, queue.ErrUncertain) {
			t.Errorf("flush: %v", err)
		}
		putItems(t, q, numbered(100)...)
		must(t, q.FlushPuts(ctx))
		var want, uncertain []string
		for range 112 {
			if ev := <-events; ev.Err == nil {
				want = append(want, ev.Items...)
			} else if uncertain = append(uncertain, ev.Items...); !errors.Is(ev.Err, queue.ErrUncertain) {
				t.Errorf("%.12s: %v", ev.Items[0], ev.Err)
			}
		}
		all := itemsOf(t, client)
		if diff := cmp.Diff(short(withoutRepeats(all)), short(all)); diff != "" {
			t.Errorf("put twice (-want +got):\n%s", diff)
		}
		certain := slices.DeleteFunc(all, func(item string) bool { return slices.Contains(uncertain, item) })
		if diff := cmp.Diff(short(want), short(certain)); diff != "" {
			t.Errorf("in the queue (-want +got):\n%s", diff)
		}
		must(t, q.Close())
	})
}

// A put is not taken for the cause before eight connections in a row were lost with it alone, and never if it is small.
func TestPutThatLosesConnectionsForAnotherReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		bytes, cuts int
		fails       bool
	}{
		"small":             {4 << 10, 20, false},
		"large, seven cuts": {5 << 10, 7, false},
		"large, eight cuts": {5 << 10, 8, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client := testenv.Context(t), clientAt(t, place, chroot)
				q := built(builder(t, client, nil).LockPath(lockPath).BuildQueue())
				must(t, q.Start())
				putItems(t, q, "first")
				must(t, q.FlushPuts(ctx))
				cuts := place.Faults().Add(curatortest.Rule{
					Ops: []string{"create2"}, Count: tt.cuts, Action: curatortest.CutBefore,
				})
				item := strings.Repeat("x", tt.bytes-14)
				x, err := q.PutAsync(ctx, item)
				must(t, err)
				began := time.Now()
				if _, err := x.Wait(ctx); errors.Is(err, queue.ErrUncertain) != tt.fails || err != nil != tt.fails {
					t.Errorf("put after %v: %v", time.Since(began), err)
				}
				if n := cuts.Hits(); n != tt.cuts {
					t.Errorf("%d cuts", n)
				}
				if closed := q.Close(); closed != nil != tt.fails {
					t.Errorf("close: %v", closed)
				}
			})
		})
	}
}
