package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// fillUp fills a queue with a bound.
func fillUp(tb testing.TB, client *framework.Client, bound int) {
	tb.Helper()
	q := built(builder(tb, client, nil).PutWindow(bound).BuildQueue())
	must(tb, q.Start())
	putItems(tb, q, numbered(bound)...)
	must(tb, q.Close())
}

// removeFirst deletes the first n nodes of a queue.
func removeFirst(tb testing.TB, client *framework.Client, n int) {
	tb.Helper()
	ctx := testenv.Context(tb)
	names, err := client.GetChildren().ForPath(ctx, queuePath)
	must(tb, err)
	slices.Sort(names)
	for _, name := range names[:n] {
		must(tb, client.Delete().ForPath(ctx, queuePath+"/"+name))
	}
}

// sizeOf returns how many nodes a queue has, 0 if its path does not exist.
func sizeOf(tb testing.TB, client *framework.Client) int {
	tb.Helper()
	names, err := client.GetChildren().ForPath(testenv.Context(tb), queuePath)
	if !errors.Is(err, zk.ErrNoNode) {
		must(tb, err)
	}
	return len(names)
}

// awaitWatch waits until a producer watches the queue, and so waits for room.
func awaitWatch(tb testing.TB, faults *curatortest.Faults, op string) {
	tb.Helper()
	testenv.Eventually(tb, func() bool { return countOf(faults, op) > 0 }, "the queue is watched")
}

// Processes exceed the bound by no more than one put each, or the share of the room that each may use unseen.
func TestBoundIsExceededByOnePutOfEachProcess(t *testing.T) {
	t.Parallel()
	const processes = 8
	for _, bound := range []int{1, 5, 8, 9, 40, 300} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := curatortest.NewServerT(t, curatortest.WithoutPort())
				ctx, cancel := context.WithCancel(testenv.Context(t))
				observer := clientAt(t, server, "")
				done := make(chan error)
				for range processes {
					q := built(builder(t, clientAt(t, server, ""), nil).MaxItems(bound).BuildQueue())
					must(t, q.Start())
					go func() {
						var err error
						for err == nil {
							err = q.Put(ctx, "a")
						}
						done <- errors.Join(q.FlushPuts(testenv.Context(t)), q.Close())
					}()
				}
				for round := range 10 {
					synctest.Wait() // all wait for room, or for their next look
					time.Sleep(time.Second)
					if n := sizeOf(t, observer); n < bound || n > bound+processes*max(1, bound/32) {
						t.Errorf("round %d: %d nodes, the bound is %d", round, n, bound)
					}
					removeFirst(t, observer, 1+round*bound/10)
				}
				cancel()
				for range processes {
					must(t, <-done)
				}
			})
		})
	}
}

// What a process has seen long ago allows it nothing: others have filled the queue since.
func TestOldCountAllowsNothing(t *testing.T) {
	t.Parallel()
	const bound, puts = 3200, 95 // of shares of 100 or 97, of which more than half is used: the next count is begun
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).MaxItems(bound).BuildQueue()))
		putItems(t, q, numbered(puts)...)
		must(t, q.FlushPuts(ctx))
		fillUp(t, other, bound-puts)
		time.Sleep(200 * time.Millisecond)
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if err := q.Put(short, "one too many"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("put to a full queue: %v", err)
		}
		if n := sizeOf(t, other); n != bound {
			t.Errorf("%d nodes", n)
		}
	})
}

// A queue that is far from its bound costs few requests beside those of the puts.
func TestPutsFarFromTheBoundAreNotHeldUp(t *testing.T) {
	t.Parallel()
	const n = 2000
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q := start(t, built(builder(t, client, nil).MaxItems(2*n).BuildQueue()))
		putItems(t, q, "first")
		must(t, q.FlushPuts(ctx))
		place.Faults().ResetTrace()
		putItems(t, q, numbered(n)...)
		must(t, q.FlushPuts(ctx))
		if looks, puts := countOf(place.Faults(), "exists"), countOf(place.Faults(), "multi"); looks > n/20 || puts > n/8 {
			t.Errorf("%d puts: looked %d times, %d batches", n, looks, puts)
		}
	})
}

// Producers that wait for room list nothing: one of a process looks when something has changed.
func TestRequestsOfBlockedProducers(t *testing.T) {
	t.Parallel()
	const bound, goroutines, each = 1000, 10, 5
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		fillUp(t, other, bound)
		q := start(t, built(builder(t, client, nil).MaxItems(bound).BuildQueue()))
		place.Faults().ResetTrace()
		put := make(chan error)
		for range goroutines {
			go func() {
				var errs []error
				for range each {
					errs = append(errs, q.Put(ctx, "a"))
				}
				put <- errors.Join(errs...)
			}()
		}
		awaitWatch(t, place.Faults(), "addWatch")
		for range goroutines * each {
			removeFirst(t, other, 1)
			testenv.Eventually(t, func() bool { return sizeOf(t, other) == bound }, "a put takes the room")
		}
		for range goroutines {
			must(t, <-put)
		}
		n := map[string]int{}
		for _, e := range place.Faults().Trace() {
			if !e.Reply && e.SessionID == client.SessionID() {
				n[e.Op]++
			}
		}
		if n["getChildren2"]+n["getChildren"] > 0 || n["exists"] > 3*goroutines*each || n["addWatch"] > 2 {
			t.Errorf("requests for %d puts: %v", goroutines*each, n)
		}
		testenv.Eventually(t, func() bool { return countOf(place.Faults(), "removeWatches") > 0 }, "the watch is removed")
	})
}

// A producer that is blocked again and again counts twice for each put, and watches the queue once. Close ends the
// watch.
func TestPutsThatAreBlockedOneByOneTakeFewRequests(t *testing.T) {
	t.Parallel()
	const bound, puts = 10, 50
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		fillUp(t, other, bound)
		q := built(builder(t, client, nil).MaxItems(bound).BuildQueue())
		must(t, q.Start())
		place.Faults().ResetTrace()
		began, put := time.Now(), make(chan error)
		go func() {
			for range puts {
				put <- q.Put(ctx, "a")
			}
		}()
		awaitWatch(t, place.Faults(), "addWatch")
		for range puts {
			select {
			case err := <-put:
				t.Fatalf("put to a full queue: %v", err)
			case <-time.After(10 * time.Millisecond):
			}
			removeFirst(t, other, 1)
			must(t, <-put)
			must(t, q.FlushPuts(ctx))
		}
		n := make(map[string]int)
		for _, e := range place.Faults().Trace() {
			if !e.Reply && e.SessionID == client.SessionID() && e.Xid > 0 && e.Op != "heartbeat" {
				n[e.Op]++
			}
		}
		// The watch ends after a second in which no put needs it, such as a pause of a busy machine.
		mostRemovals := int(time.Since(began) / time.Second)
		const once = 4 // to create the path, to watch, and to count before and after that
		if sum(n) > 3*(puts+mostRemovals)+once {
			t.Errorf("requests for %d puts: %v", puts, n)
		}
		if n["removeWatches"] > mostRemovals {
			t.Errorf("the watch is removed %d times", n["removeWatches"])
		}
		must(t, q.Close())
		testenv.Eventually(t, func() bool { return countOf(place.Faults(), "removeWatches") > 0 }, "the watch is removed")
	})
}

// fullQueue returns a queue that has room for one item, and has one.
func fullQueue(t *testing.T) (*curatortest.Server, *framework.Client, *queue.DistributedQueue[string]) {
	t.Helper()
	server := curatortest.NewServerT(t, curatortest.WithoutPort())
	client := clientAt(t, server, "")
	q := start(t, built(builder(t, client, nil).MaxItems(1).BuildQueue()))
	putItems(t, q, "first")
	must(t, q.FlushPuts(testenv.Context(t)))
	return server, client, q
}

// The session ends while the watch is on its way, and the watch is set in the next session.
func TestBlockedPutLeavesNoWatchInTheNextSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := testenv.Context(t)
		server, client, q := fullQueue(t)
		watch := server.Faults().Add(curatortest.Rule{Ops: []string{"addWatch"}, Count: 1, Action: curatortest.HoldRequest})
		first := client.SessionID()
		put := make(chan error, 1)
		go func() { put <- q.Put(ctx, "second") }()
		must(t, watch.Wait(ctx))
		restore := server.Faults().RefuseConnects()
		server.Faults().CutAll()
		must(t, server.ExpireSession(first))
		restore()
		awaitSilence(t, server.Faults())
		removeFirst(t, client, 1)
		must(t, <-put)
		must(t, q.Close())
		server.EventuallyT(t, "no watch is left", func() bool { return server.Watches(queuePath) == 0 })
	})
}

// Goroutines that wait for room are served in their order.
func TestBlockedPutsAreServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := testenv.Context(t)
		_, client, q := fullQueue(t)
		items := numbered(10)
		put := make(chan error)
		for _, item := range items {
			go func() { put <- q.Put(ctx, item) }()
			synctest.Wait() // it waits behind the others
		}
		var got []string
		for range items {
			got = append(got, itemsOf(t, client)...)
			removeFirst(t, client, 1)
			must(t, <-put)
			must(t, q.FlushPuts(ctx))
		}
		got = append(got, itemsOf(t, client)...)
		if diff := cmp.Diff(append([]string{"first"}, items...), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// What has happened while a producer was blocked does not block it for ever.
func TestBlockedPutGoesOn(t *testing.T) {
	t.Parallel()
	type world struct {
		testing.TB
		faults        *curatortest.Faults
		client, other *framework.Client
		expire        func()
	}
	tests := map[string]struct {
		op      string // which watches the queue
		refused bool   // there are no persistent watches
		happens func(w world)
	}{
		"after a removal":  {"addWatch", false, func(w world) { removeFirst(w, w.other, 1) }},
		"without its path": {"addWatch", false, func(w world) { deleteAtOnce(w, w.other) }},
		"after an outage": {"addWatch", false, func(w world) {
			restore := w.faults.Add(curatortest.Rule{
				Ops: []string{"connect"}, SessionID: w.client.SessionID(), Action: curatortest.CutBefore, MayMiss: true,
			})
			w.faults.Cut(w.client.SessionID())
			removeFirst(w, w.other, 1)
			restore.Remove()
		}},
		"in another session": {"addWatch", false, func(w world) {
			w.expire()
			testenv.Eventually(w, func() bool { return countOf(w.faults, "addWatch") > 1 }, "it is watched again")
			removeFirst(w, w.other, 1)
		}},
		"an old server": {"getChildren2", true, func(w world) { removeFirst(w, w.other, 1) }},
		"an old server, without its path": {"getChildren2", true, func(w world) {
			deleteAtOnce(w, w.other)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
				fillUp(t, other, 3)
				q := start(t, built(builder(t, client, nil).MaxItems(3).BuildQueue()))
				place.Faults().ResetTrace()
				if tt.refused {
					place.Faults().Add(curatortest.Rule{
						Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
					})
				}
				put := make(chan error, 1)
				go func() { put <- q.Put(ctx, "a") }()
				awaitWatch(t, place.Faults(), tt.op)
				select {
				case err := <-put:
					t.Fatalf("put to a full queue: %v", err)
				case <-time.After(50 * time.Millisecond):
				}
				tt.happens(world{t, place.Faults(), client, other, func() { expireSession(t, place, client) }})
				must(t, <-put)
				must(t, q.FlushPuts(ctx))
				if items := itemsOf(t, other); !slices.Contains(items, "a") {
					t.Errorf("in the queue: %q", items)
				}
				for _, pause := range []time.Duration{0, 3 * time.Second} { // the watch ends meanwhile
					<-time.After(pause)
					fillUp(t, other, 3)
					blocked := make(chan error, 1)
					go func() { blocked <- q.Put(ctx, "a") }()
					<-time.After(50 * time.Millisecond)
					removeFirst(t, other, sizeOf(t, other)-2)
					must(t, <-blocked)
				}
			})
		})
	}
}

// deleteAtOnce deletes the path with its items in one transaction.
func deleteAtOnce(tb testing.TB, client *framework.Client) {
	tb.Helper()
	ctx, op := testenv.Context(tb), client.TransactionOp().Delete()
	names, err := client.GetChildren().ForPath(ctx, queuePath)
	must(tb, err)
	var ops []builders.TransactionOperation
	for _, name := range names {
		ops = append(ops, op.ForPath(queuePath+"/"+name))
	}
	_, err = client.Transaction().ForOperations(ctx, append(ops, op.ForPath(queuePath))...)
	must(tb, err)
}

// expireSession ends the session of a client.
func expireSession(tb testing.TB, place testenv.Place, client *framework.Client) {
	tb.Helper()
	type server interface{ ExpireSession(sessionID int64) error }
	s, ok := place.(server)
	if !ok { // a proxy
		s = testenv.Server(tb)
	}
	must(tb, s.ExpireSession(client.SessionID()))
}

// A bounded queue that is watched for room is consumed by the same client.
func TestBlockedProducerBesideAConsumerOfTheSameClient(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			ctx, client := testenv.Context(t), clientAt(t, place, chroot)
			got := newBasket(t)
			q := start(t, built(mode(builder(t, client, got.consume)).MaxItems(2).BuildQueue()))
			want := numbered(50)
			putItems(t, q, want...)
			must(t, q.FlushPuts(ctx))
			if diff := cmp.Diff(want, got.await(len(want))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	})
}

// A put that waits behind another one ends with its context.
func TestPutBehindBlockedPutEndsWithItsContext(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		fillUp(t, other, 3)
		q := start(t, built(builder(t, client, nil).MaxItems(3).BuildQueue()))
		first := make(chan error, 1)
		go func() { first <- q.Put(ctx, "a") }()
		awaitWatch(t, place.Faults(), "addWatch")
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		second := make(chan error, 1)
		go func() { second <- q.Put(short, "b") }()
		select {
		case err := <-second:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("put: %v", err)
			}
		case err := <-first:
			t.Errorf("put to a full queue: %v", err)
		case <-time.After(testenv.InTime(time.Second)):
			t.Error("the put outlives its context")
		}
		removeFirst(t, other, 1)
		must(t, <-first)
	})
}

// A blocked producer watches again if the answer to the first watch is lost, or if the path is deleted before it.
func TestBlockedPutWatchesAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		isOld   bool
		op      string
		isHeld  bool
		happens func(tb testing.TB, other *framework.Client)
	}{
		"after a lost connection": {false, "addWatch", false, func(testing.TB, *framework.Client) {}},
		"an old server, a lost path": {true, "getChildren2", true, func(tb testing.TB, other *framework.Client) {
			tb.Helper()
			deleteAtOnce(tb, other)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
				if tt.isOld {
					place.Faults().Add(curatortest.Rule{
						Ops: []string{"addWatch"}, Action: curatortest.ReplyError, Err: framework.ErrUnimplemented,
					})
				}
				fillUp(t, other, 3)
				q := start(t, built(builder(t, client, nil).MaxItems(3).BuildQueue()))
				rule := curatortest.Rule{
					Ops: []string{tt.op}, SessionID: client.SessionID(), Count: 1, Action: curatortest.CutBefore,
				}
				if tt.isHeld {
					rule.Action = curatortest.HoldRequest
				}
				fault := place.Faults().Add(rule)
				const puts = 6
				put := make(chan error, puts)
				go func() {
					for range puts {
						put <- q.Put(ctx, "a")
					}
				}()
				must(t, fault.Wait(ctx))
				tt.happens(t, other)
				if tt.isHeld {
					fault.Release()
				}
				for range puts {
					testenv.Eventually(t, func() bool {
						if n := sizeOf(t, other); n >= 3 && len(put) == 0 {
							removeFirst(t, other, n-2)
						}
						return len(put) > 0
					}, "puts go on where there is room")
					must(t, <-put)
				}
			})
		})
	}
}

// One count suffices for the puts of a moment: that of a round trip, or a millisecond where it is shorter.
func TestPutsOfAMomentShareACount(t *testing.T) {
	t.Parallel()
	const n = 100
	for name, tt := range map[string]struct{ roundTrip, pause time.Duration }{
		"of a fast server": {0, 100 * time.Microsecond},
		"of a slow server": {20 * time.Millisecond, 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client := testenv.Context(t), clientAt(t, place, chroot)
				q := start(t, built(builder(t, client, nil).MaxItems(100*n).BuildQueue()))
				putItems(t, q, "first")
				must(t, q.FlushPuts(ctx))
				if tt.roundTrip > 0 {
					place.Faults().Add(curatortest.Rule{
						SessionID: client.SessionID(), Action: curatortest.DelayReply, Delay: tt.roundTrip,
					})
				}
				place.Faults().ResetTrace()
				for _, item := range numbered(n) {
					must(t, q.Put(ctx, item))
					<-time.After(tt.pause)
				}
				if counts := countOf(place.Faults(), "exists"); counts > n/2 && !testenv.Real() {
					t.Errorf("%d puts: counted %d times", n, counts)
				}
				must(t, q.FlushPuts(ctx))
			})
		})
	}
}

// An old server closes the connection of a client that asks it for a persistent watch.
func TestBlockedPutsAskAnOldServerForAWatchOnce(t *testing.T) {
	t.Parallel()
	onAnOldServer(t, func(t *testing.T, place testenv.Place, chroot string, items []string) {
		ctx, client, other := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		fillUp(t, other, 3)
		q := start(t, built(builder(t, client, nil).MaxItems(3).BuildQueue()))
		for _, item := range items {
			put := make(chan error, 1)
			go func() { put <- q.Put(ctx, item) }()
			awaitSilence(t, place.Faults())
			removeFirst(t, other, 1)
			must(t, <-put)
			must(t, q.FlushPuts(ctx))
		}
		if n := countOf(place.Faults(), "addWatch"); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}
