package queue_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestRequeueFailedAfterItsContextIsReported loses an item that is put back, after the caller has stopped waiting.
func TestRequeueFailedAfterItsContextIsReported(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client, errs := clientAt(t, place, chroot), newReports()
		q := start(t, built(builder(t, client, nil).OnError(errs.add).BuildQueue()))
		putAll(t, q, "a")
		item := pullOne(t, q)
		held := place.Faults().Add(curatortest.Rule{
			Ops: []string{"create", "create2"}, SessionID: client.SessionID(), Count: 1, Action: curatortest.HoldRequest,
		})
		ctx, cancel := context.WithCancel(testenv.Context(t))
		ended := make(chan error)
		go func() { ended <- item.Requeue(ctx) }()
		must(t, held.Wait(ctx))
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("requeue: %v", err)
		}
		place.Faults().Cut(client.SessionID())
		err := errs.await(t, 1)[0]
		var about *queue.ItemError
		if !errors.Is(err, queue.ErrUncertain) || !errors.As(err, &about) || !bytes.Contains(about.Data, []byte("a")) {
			t.Errorf("reported is %v", err)
		}
	})
}

// TestSettlementOpenAtCloseIsReported closes a queue during an outage. Nobody waits for the settlement: the item was
// consumed, or the context of Done has ended.
func TestSettlementOpenAtCloseIsReported(t *testing.T) {
	t.Parallel()
	for _, pulled := range []bool{false, true} {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client, errs, g := clientAt(t, place, chroot), newReports(), newGate("a")
			var consumer queue.Consumer[string]
			if !pulled {
				consumer = func(_ context.Context, item string) error {
					g.pass(item)
					return nil
				}
			}
			b := builder(t, client, consumer).LockPath(lockPath).OnError(errs.add).FinalFlushTime(time.Second)
			q := built(b.BuildQueue())
			must(t, q.Start())
			putAll(t, q, "a")
			var item queue.Item[string]
			if pulled {
				item = pullOne(t, q)
			} else {
				g.awaitReached(t)
			}
			restore := outage(t, place.Faults(), client)
			defer restore()
			g.open()
			if pulled {
				ctx, cancel := context.WithTimeout(testenv.Context(t), time.Second)
				defer cancel()
				if err := item.Done(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("done: %v", err)
				}
			}
			if err := q.Close(); !errors.Is(err, queue.ErrClosed) {
				t.Errorf("close: %v", err)
			}
			if all := errs.all(); len(all) != 1 || !errors.Is(all[0], queue.ErrClosed) {
				t.Errorf("reported are %v", all)
			}
		})
	}
}
