package queue_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// allow sets what everybody may do with a node.
func allow(tb testing.TB, client *framework.Client, path string, perms int32) {
	tb.Helper()
	if _, err := client.SetACL().WithACL(zk.WorldACL(perms)...).ForPath(testenv.Context(tb), path); err != nil {
		tb.Fatal(err)
	}
}

// TestRefusedSettlementDeliversItemOnce has the server refuse to delete an item that is consumed, until it may be.
func TestRefusedSettlementDeliversItemOnce(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		got, errs := newBasket(t), newReports()
		q := start(t, built(builder(t, client, got.consume).LockPath(lockPath).OnError(errs.add).BuildQueue()))
		putAll(t, q, "before")
		awaitEmpty(t, client)
		allow(t, client, queuePath, zk.PermAll&^zk.PermDelete)
		putAll(t, q, "a")
		errs.await(t, 1)
		<-time.After(2 * time.Second)
		if items := got.await(2); len(items) != 2 {
			t.Errorf("an item that cannot be settled is delivered %d times", len(items)-1)
		}
		if all := errs.all(); len(all) != 1 {
			t.Errorf("one cause is reported %d times, first %v", len(all), all[0])
		}
		if err := errs.paths()[queuePath+"/queue-0000000001"]; !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("reported is %v", err)
		}
		if locks := names(t, client, lockPath); len(locks) != 1 {
			t.Errorf("locks %q", locks)
		}
		allow(t, client, queuePath, zk.PermAll)
		awaitEmpty(t, client)
		if items := got.await(2); len(items) != 2 {
			t.Errorf("delivered are %q", items)
		}
	})
}

// TestUnlockRefusedAtCloseIsTriedAgain closes a queue while the server refuses to unlock its items. Once that is
// allowed another consumer gets them, though the session goes on.
func TestUnlockRefusedAtCloseIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, perms := range map[string]int32{
		"no lock may be deleted": zk.PermAll &^ zk.PermDelete,
		"nothing is allowed":     zk.PermAdmin,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				ctx, client := testenv.Context(t), clientAt(t, place, chroot)
				g, errs := newGate("consumed"), newReports()
				defer g.open()
				consumer := built(builder(t, client, func(_ context.Context, item string) error {
					g.pass(item)
					return nil
				}).LockPath(lockPath).OnError(errs.add).FinalFlushTime(time.Second).BuildQueue())
				must(t, consumer.Start())
				putAll(t, consumer, "consumed")
				g.awaitReached(t)
				puller := built(builder(t, client, nil).LockPath(lockPath).BuildQueue())
				must(t, puller.Start())
				putAll(t, puller, "pulled")
				for item, err := range puller.Items(ctx) {
					must(t, err)
					if item.Value != "pulled" {
						t.Errorf("pulled is %q", item.Value)
					}
					break
				}
				allow(t, client, lockPath, perms)
				g.open()
				if err := consumer.Close(); !errors.Is(err, queue.ErrClosed) {
					t.Errorf("close: %v", err)
				}
				must(t, puller.Close())
				reported := len(errs.all())
				<-time.After(time.Second)
				allow(t, client, lockPath, zk.PermAll)
				again := newBasket(t)
				start(t, built(builder(t, clientAt(t, place, chroot), again.consume).LockPath(lockPath).BuildQueue()))
				again.await(2)
				awaitEmpty(t, client)
				if all := errs.all(); len(all) > reported {
					t.Errorf("after Close there are the reports %v", all[reported:])
				}
			})
		})
	}
}

// TestUnlockRefusedAtCloseEndsWithTheClient closes a queue, and later its client, while the server refuses to unlock
// an item.
func TestUnlockRefusedAtCloseEndsWithTheClient(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		q := built(builder(t, client, nil).LockPath(lockPath).BuildQueue())
		must(t, q.Start())
		putAll(t, q, "a")
		for _, err := range q.Items(testenv.Context(t)) {
			must(t, err)
			break
		}
		allow(t, client, lockPath, zk.PermAll&^zk.PermDelete)
		must(t, q.Close())
		before := sum(sent(place.Faults()))
		<-time.After(testenv.Size(time.Minute, 5*time.Second, time.Minute))
		if n := sum(sent(place.Faults())) - before; n > 100 {
			t.Errorf("meanwhile there are %d requests for an item that cannot be unlocked", n)
		}
	}) // it waits for every goroutine
}

// failureTime is for how long an item fails. Pauses of 10 ms, 20 ms, and so on fit in it leastFailures to mostFailures
// times.
const (
	failureTime   = 3 * time.Second
	leastFailures = 5
	mostFailures  = 10
)

// TestItemThatAlwaysFailsIsDeliveredWithGrowingPauses puts others beside it, which do not wait, and closes the queue
// during a pause.
func TestItemThatAlwaysFailsIsDeliveredWithGrowingPauses(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		client := clientAt(t, place, chroot)
		failing, others := newBasket(t), newBasket(t)
		q := built(builder(t, client, func(_ context.Context, item string) error {
			if item != "failing" {
				others.add(item)
				return nil
			}
			failing.add(item)
			if len(failing.await(1)) > mostFailures {
				return nil // without pauses no virtual time would pass
			}
			return errors.New("broken")
		}).LockPath(lockPath).OnError(newReports().add).BuildQueue())
		must(t, q.Start())
		putAll(t, q, "failing")
		failing.await(1)
		end := time.After(failureTime)
		putAll(t, q, "other")
		others.await(1)
		<-end
		if n := len(failing.await(1)); n < leastFailures || n > mostFailures {
			t.Errorf("an item that fails is delivered %d times in %v", n, failureTime)
		}
		must(t, q.Close())
		if items, locks := names(t, client, queuePath), names(t, client, lockPath); len(items) != 1 || len(locks) != 0 {
			t.Errorf("after close there are the items %q and the locks %q", items, locks)
		}
	})
}

// TestRequeueWithoutLockPathReportsItsFailure puts an item back that the server does not accept, or whose answer is
// lost.
func TestRequeueWithoutLockPathReportsItsFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule curatortest.Rule
		want error
	}{
		"refused":     {curatortest.Rule{Action: curatortest.ReplyError, Err: zk.ErrNoAuth}, zk.ErrNoAuth},
		"answer lost": {curatortest.Rule{Action: curatortest.CutAfter}, queue.ErrUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, chroot := testenv.Context(t), testenv.Chroot(t)
			proxy, connect := newProxy(t, chroot)
			q := built(builder(t, newClient(t, connect), nil).BuildQueue())
			must(t, q.Start())
			putAll(t, q, "a")
			for item, err := range q.Items(ctx) {
				must(t, err)
				tt.rule.Ops, tt.rule.Path, tt.rule.Count = []string{"create", "create2", "multi"}, chroot+queuePath+"/*", 1
				proxy.Faults().Add(tt.rule)
				err := item.Requeue(ctx)
				wantItemError(t, err, tt.want, "a")
				break
			}
			_ = q.Close() // it may report the put, too
		})
	}
}

// TestItemsThatAreNotWantedAreReportedIfTheyCannotBePutBack ends a loop within items that were put together.
func TestItemsThatAreNotWantedAreReportedIfTheyCannotBePutBack(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, errs := testenv.Context(t), newReports()
		q := built(builder(t, clientAt(t, place, chroot), nil).OnError(errs.add).BuildQueue())
		must(t, q.Start())
		must(t, q.PutMulti(ctx, "a", "b"))
		must(t, q.FlushPuts(ctx))
		var first queue.Item[string]
		for item, err := range q.Items(ctx) {
			must(t, err)
			place.Faults().Add(curatortest.Rule{
				Ops: []string{"create", "create2", "multi"}, Path: chroot + queuePath + "/*",
				Action: curatortest.ReplyError, Err: zk.ErrNoAuth,
			})
			first = item
			break
		}
		err := first.Done(ctx)
		_ = q.Close() // it may report the put, too
		if err == nil {
			err = errs.await(t, 1)[0]
		}
		wantItemError(t, err, zk.ErrNoAuth, "b")
	})
}

// wantItemError fails if err does not wrap what it has to, or has not the bytes of the item.
func wantItemError(tb testing.TB, err, want error, item string) {
	tb.Helper()
	var about *queue.ItemError
	switch {
	case !errors.Is(err, want):
		tb.Errorf("error %v, want one that wraps %v", err, want)
	case !errors.As(err, &about):
		tb.Errorf("no ItemError: %v", err)
	case !bytes.Contains(about.Data, []byte(item)):
		tb.Errorf("the error about %q has the bytes %q", item, about.Data)
	}
}
