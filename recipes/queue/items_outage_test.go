package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// mostEnding is how long a loop may take to end: it does not wait for a connection.
const mostEnding = time.Second

// awaitLoss waits until a client reports that its connection is lost: what it sends before may be lost with it.
func awaitLoss(tb testing.TB, client *framework.Client) {
	tb.Helper()
	testenv.Eventually(tb, func() bool { return !client.IsConnected() }, "the connection is lost")
}

// TestItemsEndsWithItsContextDuringOutage loses the answer to a claim, and ends the context of the loop before the
// connection is back.
func TestItemsEndsWithItsContextDuringOutage(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			others, client := clientAt(t, place, chroot), clientAt(t, place, chroot)
			producer := start(t, built(mode(builder(t, others, nil)).BuildQueue()))
			putAll(t, producer, "a")
			errs := newReports()
			q := built(mode(builder(t, client, nil)).FinalFlushTime(time.Hour).OnError(errs.add).BuildQueue())
			must(t, q.Start())
			claim := place.Faults().Add(curatortest.Rule{
				Ops: []string{"create", "create2", "delete", "multi"}, SessionID: client.SessionID(), Count: 1,
				Action: curatortest.HoldReply,
			})
			ctx, cancel := context.WithCancel(testenv.Context(t))
			ended := make(chan error, 1)
			go func() {
				var last error
				for _, err := range q.Items(ctx) {
					last = err
				}
				ended <- last
			}()
			must(t, claim.Wait(ctx))
			restore := outage(t, place.Faults(), client)
			<-time.After(shortOutage)
			began := time.Now()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the loop ended with %v", err)
			}
			if took := time.Since(began); took > testenv.InTime(mostEnding) {
				t.Errorf("the loop took %v to end", took)
			}
			restore()
			must(t, q.Close())
			if len(errs.all()) == 0 { // it went back
				next, stop := pullAll(testenv.Context(t), producer)
				defer stop()
				if got := next(t); got != "a" {
					t.Errorf("got %q", got)
				}
			}
		})
	})
}

// TestLoopThatBreaksDuringOutageEnds breaks out of a loop within items that were put together. The rest goes back when
// the connection is there again.
func TestLoopThatBreaksDuringOutageEnds(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			ctx, others, client := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
			q := built(mode(builder(t, client, nil)).FinalFlushTime(time.Hour).BuildQueue())
			must(t, q.Start())
			must(t, q.PutMulti(ctx, "a", "b"))
			must(t, q.FlushPuts(ctx))
			var restore func()
			var began time.Time
			for item, err := range q.Items(ctx) {
				must(t, err)
				must(t, item.Done(ctx))
				restore = outage(t, place.Faults(), client)
				awaitLoss(t, client)
				began = time.Now()
				break
			}
			if took := time.Since(began); took > testenv.InTime(mostEnding) {
				t.Errorf("the loop took %v to end", took)
			}
			restore()
			must(t, q.Close())
			other := start(t, built(mode(builder(t, others, nil)).BuildQueue()))
			next, stop := pullAll(ctx, other)
			defer stop()
			if got := next(t); got != "b" {
				t.Errorf("got %q", got)
			}
		})
	})
}

// TestPutBackThatFailsAfterLoopIsReported ends a loop whose rest cannot be put back.
func TestPutBackThatFailsAfterLoopIsReported(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, errs := testenv.Context(t), clientAt(t, place, chroot), newReports()
		q := built(builder(t, client, nil).FinalFlushTime(time.Second).OnError(errs.add).BuildQueue())
		must(t, q.Start())
		must(t, q.PutMulti(ctx, "a", "b"))
		must(t, q.FlushPuts(ctx))
		var restore func()
		for item, err := range q.Items(ctx) {
			must(t, err)
			must(t, item.Done(ctx))
			restore = outage(t, place.Faults(), client)
			awaitLoss(t, client)
			break
		}
		began := time.Now()
		must(t, q.Close())
		if took := time.Since(began); took > testenv.InTime(2*time.Second) {
			t.Errorf("close took %v", took)
		}
		wantItemError(t, errs.await(t, 1)[0], queue.ErrClosed, "b")
		restore()
	})
}
