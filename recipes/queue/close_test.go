package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// shortOutage is an outage that every session outlives.
const shortOutage = 50 * time.Millisecond

// TestCloseDuringOutageDeliversNoConsumedItemAgain consumes all items while the connection is lost and closes the queue
// before it is back. Another consumer waits for whatever is unlocked.
func TestCloseDuringOutageDeliversNoConsumedItemAgain(t *testing.T) {
	t.Parallel()
	const n = 600
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		others := clientAt(t, place, chroot)
		producer := start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue()))
		putAll(t, producer, numbered(n)...)
		client := clientAt(t, place, chroot)
		began, goOn := newBasket(t), make(chan struct{})
		open := sync.OnceFunc(func() { close(goOn) })
		defer open()
		q := start(t, built(builder(t, client, func(_ context.Context, item string) error {
			began.add(item)
			<-goOn
			return nil
		}).LockPath(lockPath).Concurrency(n).PutWindow(n).FinalFlushTime(time.Minute).BuildQueue()))
		began.await(n)
		again := newBasket(t)
		start(t, built(builder(t, others, again.consume).LockPath(lockPath).BuildQueue()))

		restore := outage(t, place.Faults(), client)
		open()
		closed := closing(q)
		<-time.After(shortOutage)
		restore()
		must(t, <-closed)
		awaitEmpty(t, others)
		if items := again.await(0); len(items) > 0 {
			t.Errorf("%d of %d consumed items are delivered again", len(items), n)
		}
	})
}

// TestCloseDuringOutageDeliversNoPulledItemAgain is the same for items that are pulled and done.
func TestCloseDuringOutageDeliversNoPulledItemAgain(t *testing.T) {
	t.Parallel()
	const n = 100
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, others := testenv.Context(t), clientAt(t, place, chroot)
		producer := start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue()))
		putAll(t, producer, numbered(n)...)
		client := clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).LockPath(lockPath).PutWindow(n).FinalFlushTime(time.Minute).BuildQueue()))
		var held []queue.Item[string]
		for item, err := range q.Items(ctx) {
			must(t, err)
			if held = append(held, item); len(held) == n {
				break
			}
		}
		again := newBasket(t)
		start(t, built(builder(t, others, again.consume).LockPath(lockPath).BuildQueue()))

		restore := outage(t, place.Faults(), client)
		var done sync.WaitGroup
		submitted := make(chan struct{}, n)
		for _, item := range held {
			done.Go(func() {
				submitted <- struct{}{}
				if err := item.Done(ctx); err != nil {
					t.Errorf("done: %v", err)
				}
			})
		}
		for range n {
			<-submitted
		}
		<-time.After(shortOutage / 2) // all of them wait for a connection
		closed := closing(q)
		<-time.After(shortOutage / 2)
		restore()
		must(t, <-closed)
		done.Wait()
		awaitEmpty(t, others)
		if items := again.await(0); len(items) > 0 {
			t.Errorf("%d of %d items are delivered again that are done", len(items), n)
		}
	})
}

// closing closes a queue in the background. It returns when nothing is accepted any more.
func closing(q *queue.DistributedQueue[string]) (closed <-chan error) {
	errs := make(chan error, 1)
	go func() { errs <- q.Close() }()
	for q.State() != queue.Closed {
		<-time.After(time.Millisecond)
	}
	return errs
}

// TestCloseAfterLostRequestKeepsPromise cuts the connection before and after each request of a consumer in turn, and
// closes its queue before the connection is back. Another consumer gets the rest.
func TestCloseAfterLostRequestKeepsPromise(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.EachCut(t, func(t *testing.T, action curatortest.Action, k int) (hit bool) {
			return closeAfterCut(t, mode, action, k)
		})
	})
}

func closeAfterCut(t *testing.T, mode modifier, action curatortest.Action, k int) (hit bool) {
	t.Helper()
	ctx, chroot := testenv.Context(t), testenv.Chroot(t)
	direct := testenv.Addr(t) + chroot
	others := newClient(t, direct)
	producer := start(t, built(mode(builder(t, others, nil)).BuildQueue()))
	paths := make(map[string]string) // by item
	producer.AddPutListener(func(_ context.Context, ev queue.PutEvent[string]) {
		paths[ev.Items[0]] = ev.Path
	})
	putAll(t, producer, numbered(6)...)

	proxy, connect := newProxy(t, chroot)
	client := newClient(t, connect)
	must(t, client.BlockUntilConnected(ctx))
	injection := proxy.Faults().Add(curatortest.Rule{Skip: k, Count: 1, Action: action, MayMiss: k > 0})
	reconnects := proxy.Faults().Add(curatortest.Rule{
		Ops: []string{"connect"}, Action: curatortest.HoldRequest, MayMiss: true, // it may be closed before
	})
	first, second, errs := newBasket(t), newBasket(t), newReports()
	q := built(mode(builder(t, client, first.consume)).OnError(errs.add).FinalFlushTime(time.Minute).BuildQueue())
	must(t, q.Start())
	testenv.Eventually(t, func() bool {
		return injection.Hits() > 0 || len(children(t, direct, queuePath))+len(children(t, direct, lockPath)) == 0
	}, "the connection is lost, or nothing is left")
	other := start(t, built(mode(builder(t, others, second.consume)).BuildQueue()))
	closed := closing(q)
	reconnects.Release()
	must(t, <-closed)
	awaitNothing(t, direct)
	must(t, other.Close()) // what it has claimed is consumed

	times, reported := make(map[string]int), errs.paths()
	for _, item := range append(first.await(0), second.await(0)...) {
		times[item]++
	}
	for item, path := range paths {
		if n, err := times[item], reported[path]; n != 1 && !errors.Is(err, queue.ErrUncertain) {
			t.Errorf("%q is delivered %d times, reported is %v", item, n, err)
		}
		if n := times[item]; n == 0 && isLossless(mode) || n > 1 && !isLossless(mode) {
			t.Errorf("%q is delivered %d times", item, n)
		}
	}
	return injection.Hits() > 0
}

// isLossless reports whether a mode delivers each item at least once.
func isLossless(mode modifier) bool {
	client, err := framework.New("localhost:2181")
	if err != nil {
		panic(err)
	}
	_, err = mode(queue.NewBuilder(client, nil, codec.Text{}, queuePath)).
		ErrorMode(queue.RequeueOnError).BuildQueue()
	return err == nil
}

// TestCloseWithSilentServerTakesFinalFlushTime closes a queue of which claims, settlements and puts are not answered.
func TestCloseWithSilentServerTakesFinalFlushTime(t *testing.T) {
	t.Parallel()
	const flush = time.Second
	for name, waits := range map[string]bool{
		"with a consumer that returns":                          false,
		"with a consumer that waits for the end of its context": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachMode(t, func(t *testing.T, mode modifier) {
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					g := newGate("item 10")
					defer g.open()
					client := clientAt(t, place, chroot)
					q := built(mode(builder(t, client, func(ctx context.Context, item string) error {
						g.pass(item)
						if waits && item == g.item {
							<-ctx.Done()
						}
						return nil
					})).OnError(newReports().add).FinalFlushTime(flush).BuildQueue())
					must(t, q.Start())
					putAll(t, q, numbered(20)...)
					g.awaitReached(t)
					thaw := place.Faults().Freeze()
					defer thaw() // before the client is closed
					ctx := testenv.Context(t)
					for range 5 {
						must(t, q.Put(ctx, "late"))
					}
					g.open()
					wantClosedInTime(t, q)
				})
			})
		})
	}
}

// TestCloseOfIdleQueueWithSilentServerTakesFinalFlushTime closes a queue that only waits.
func TestCloseOfIdleQueueWithSilentServerTakesFinalFlushTime(t *testing.T) {
	t.Parallel()
	const flush = time.Second
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			q := built(mode(builder(t, clientAt(t, place, chroot), newBasket(t).consume)).
				OnError(newReports().add).FinalFlushTime(flush).BuildQueue())
			must(t, q.Start())
			awaitSilence(t, place.Faults())
			defer place.Faults().Freeze()()
			wantClosedInTime(t, q)
		})
	})
}

// TestCloseWhileWatchIsNotAnsweredTakesFinalFlushTime closes a queue that waits for the answer to its first watch.
func TestCloseWhileWatchIsNotAnsweredTakesFinalFlushTime(t *testing.T) {
	t.Parallel()
	const flush = time.Second
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client := clientAt(t, place, chroot)
			watch := place.Faults().Add(curatortest.Rule{
				Ops: []string{"addWatch"}, Path: chroot + queuePath, Action: curatortest.HoldRequest,
			})
			defer watch.Remove()
			q := built(mode(builder(t, client, newBasket(t).consume)).
				OnError(newReports().add).FinalFlushTime(flush).BuildQueue())
			must(t, q.Start())
			must(t, watch.Wait(testenv.Context(t)))
			wantClosedInTime(t, q)
		})
	})
}

// TestCloseWhileMoveIsNotAnsweredTakesFinalFlushTime closes a queue that moves an item to the dead letters.
func TestCloseWhileMoveIsNotAnsweredTakesFinalFlushTime(t *testing.T) {
	t.Parallel()
	const flush = time.Second
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		_, err := client.Create().CreatingParentsIfNeeded().ForPath(ctx, queuePath+"/queue-0", nil)
		must(t, err)
		move := place.Faults().Add(curatortest.Rule{Ops: []string{"multi"}, Action: curatortest.HoldRequest})
		defer move.Remove()
		q := built(builder(t, client, newBasket(t).consume).DeadLetterPath("/dead-letters").
			OnError(newReports().add).FinalFlushTime(flush).BuildQueue())
		must(t, q.Start())
		must(t, move.Wait(ctx))
		wantClosedInTime(t, q)
	})
}

// wantClosedInTime closes a queue whose final flush time is a second.
func wantClosedInTime(tb testing.TB, q life) {
	tb.Helper()
	const flush = time.Second
	began := time.Now()
	_ = q.Close() // it may report what it gave up
	if took := time.Since(began); took > testenv.InTime(flush+flush/10) {
		tb.Errorf("close takes %v with a final flush time of %v", took, flush)
	}
}

// TestCloseMayBeCalledInOnError closes a queue in the callback for the error of its consumer.
func TestCloseMayBeCalledInOnError(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		ctx := testenv.Context(t)
		client := newClient(t, testenv.ConnectString(t))
		var q *queue.DistributedQueue[string]
		closed := make(chan error, 1)
		q = built(mode(builder(t, client, func(context.Context, string) error { return errors.New("broken") })).
			OnError(func(context.Context, error) {
				select {
				case closed <- q.Close():
				default:
				}
			}).BuildQueue())
		must(t, q.Start())
		must(t, q.Put(ctx, "a"))
		select {
		case err := <-closed:
			must(t, err)
		case <-time.After(callbackLimit):
			t.Fatal("the callback waits for Close, and Close for the callback")
		}
	})
}

// callbackLimit is for callbacks that wait for themselves. It is far above the final flush time.
const callbackLimit = 30 * time.Second

// TestItemConsumedBeforeCloseIsReportedWhenSessionEnds ends the session of a consumer that is closed while it cannot
// settle: what is consumed and delivered again is reported.
func TestItemConsumedBeforeCloseIsReportedWhenSessionEnds(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		others, g, errs := clientAt(t, place, chroot), newGate("a"), newReports()
		defer g.open()
		producer := start(t, built(builder(t, others, nil).LockPath(lockPath).BuildQueue()))
		client := clientAt(t, place, chroot)
		q := built(builder(t, client, func(_ context.Context, item string) error {
			g.pass(item)
			return nil
		}).LockPath(lockPath).OnError(errs.add).FinalFlushTime(time.Second).BuildQueue())
		must(t, q.Start())
		putAll(t, producer, "a")
		g.awaitReached(t)
		again := newBasket(t)
		start(t, built(builder(t, others, again.consume).LockPath(lockPath).BuildQueue()))
		restore := outage(t, place.Faults(), client)
		g.open()
		err := q.Close()
		expire(t, place, client)
		again.await(1)
		restore()
		awaitEmpty(t, others)
		if len(errs.paths()) == 0 && err == nil {
			t.Error("an item is delivered twice, and neither OnError nor Close reports it")
		}
	})
}

// TestCloseInConsumerReturnsAndReportsTheConsumer calls Close where it would wait for itself.
func TestCloseInConsumerReturnsAndReportsTheConsumer(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client, others := clientAt(t, place, chroot), clientAt(t, place, chroot)
			queues, closed := make(chan stringQueue, 1), make(chan error, 1)
			q := built(mode(builder(t, client, func(context.Context, string) error {
				closed <- (<-queues).Close()
				return nil
			})).FinalFlushTime(time.Second).OnError(newReports().add).BuildQueue())
			queues <- q
			must(t, q.Start())
			putAll(t, q, "a")
			select {
			case err := <-closed:
				if !errors.Is(err, queue.ErrClosed) {
					t.Errorf("close: %v", err)
				}
			case <-time.After(callbackLimit):
				t.Fatal("Close waits for itself")
			}
			if err := q.Close(); !errors.Is(err, queue.ErrClosed) {
				t.Errorf("the second close: %v", err)
			}
			if isLossless(mode) { // the item is unlocked when the consumer has returned, and goes to another
				got := newBasket(t)
				start(t, built(mode(builder(t, others, got.consume)).BuildQueue()))
				got.await(1)
			}
		})
	})
}
