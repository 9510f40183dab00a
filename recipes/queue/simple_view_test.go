package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// takeOneThatWaits has a Take wait for an element, so that the queue is watched.
func takeOneThatWaits(t *testing.T, place testenv.Place, q, others *queue.SimpleDistributedQueue) {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		data, _ := q.Take(testenv.Context(t))
		got <- string(data)
	}()
	awaitSilence(t, place.Faults())
	offer(t, others, "first")
	if g := <-got; g != "first" {
		t.Fatalf("got %q", g)
	}
}

// TestPeekedElementOfADeletedPathDoesNotOvertake makes the path anew with an element of the same name.
func TestPeekedElementOfADeletedPathDoesNotOvertake(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, operator := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		q, others := simple(client), simple(operator)
		takeOneThatWaits(t, place, q, others)
		offer(t, others, "old")
		want(t, "old")(q.Peek(ctx))
		must(t, operator.Delete().DeletingChildrenIfNeeded().ForPath(ctx, queuePath))
		offer(t, others, numbered(3)...)
		must(t, client.Sync().ForPath(ctx, queuePath))
		for _, element := range numbered(3) {
			want(t, element)(q.Poll(ctx))
		}
	})
}

// TestPathMadeAnewWhileNothingWasWatchedIsFound has a list whose elements are gone with their path.
func TestPathMadeAnewWhileNothingWasWatchedIsFound(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, operator := testenv.Context(t), clientAt(t, place, chroot), clientAt(t, place, chroot)
		q, others := simple(client), simple(operator)
		offer(t, others, numbered(3)...)
		want(t, numbered(3)[0])(q.Poll(ctx))
		<-time.After(2 * time.Second) // the watch of the path has ended
		must(t, operator.Delete().DeletingChildrenIfNeeded().ForPath(ctx, queuePath))
		offer(t, others, "new")
		must(t, client.Sync().ForPath(ctx, queuePath))
		want(t, "new")(q.Poll(ctx))
	})
}

// TestLateRemovalOfAWatchSparesTheNext loses the removal of a watch. The next call sets another before the removal is
// tried again.
func TestLateRemovalOfAWatchSparesTheNext(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q, others := simple(client), simple(clientAt(t, place, chroot))
		takeOneThatWaits(t, place, q, others)
		removal := place.Faults().Add(curatortest.Rule{
			Ops: []string{"removeWatches"}, Count: 1, Action: curatortest.CutBefore,
		})
		must(t, removal.Wait(ctx))
		got := make(chan string, 1)
		go func() {
			data, _ := q.Take(ctx)
			got <- string(data)
		}()
		awaitSilence(t, place.Faults())
		offer(t, others, "next")
		select {
		case g := <-got:
			if g != "next" {
				t.Errorf("got %q", g)
			}
		case <-ctx.Done():
			t.Fatal("Take waits")
		}
	})
}

// TestShortPollForTakesAnElementLeftToOthers waits for less than the pause of one whom another has overtaken.
func TestShortPollForTakesAnElementLeftToOthers(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		q, others := simple(client), simple(clientAt(t, place, chroot))
		takeOneThatWaits(t, place, q, others)
		offer(t, others, "second")
		want(t, "second")(others.Poll(ctx))
		offer(t, others, "third")
		must(t, client.Sync().ForPath(ctx, queuePath))
		want(t, "third")(q.PollFor(ctx, time.Millisecond))
	})
}

// TestSimpleQueueIsListedOnceAfterItsWatchWasLost counts the lists: one is enough for all elements, whatever has become
// of the watch.
func TestSimpleQueueIsListedOnceAfterItsWatchWasLost(t *testing.T) {
	t.Parallel()
	const elements = 20
	losses := map[string]func(t *testing.T, place testenv.Place, client *framework.Client){
		"lost connection": func(t *testing.T, place testenv.Place, client *framework.Client) {
			t.Helper()
			outage(t, place.Faults(), client)()
			must(t, client.BlockUntilConnected(testenv.Context(t)))
		},
		"changed data": func(t *testing.T, _ testenv.Place, client *framework.Client) {
			t.Helper()
			_, err := client.SetData().ForPath(testenv.Context(t), queuePath, []byte("changed"))
			must(t, err)
		},
	}
	for name, lose := range losses {
		for method, remove := range map[string]func(*queue.SimpleDistributedQueue, context.Context) ([]byte, error){
			"Poll": (*queue.SimpleDistributedQueue).Poll, "Take": (*queue.SimpleDistributedQueue).Take,
		} {
			t.Run(method+" after "+name, func(t *testing.T) {
				t.Parallel()
				testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
					ctx, client := testenv.Context(t), clientAt(t, place, chroot)
					q, others := simple(client), simple(clientAt(t, place, chroot))
					takeOneThatWaits(t, place, q, others)
					for range 2 {
						offer(t, others, numbered(elements)...)
						lose(t, place, client)
						place.Faults().ResetTrace()
						for _, element := range numbered(elements) {
							want(t, element)(remove(q, ctx))
						}
						if n := requests(place.Faults())["getChildren2"]; n > 3 {
							t.Errorf("%d lists for %d elements", n, elements)
						}
					}
				})
			})
		}
	}
}
