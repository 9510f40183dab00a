package queue_test

import (
	"testing"
	"time"

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
		must(t, operator.Delete().Quietly().DeletingChildrenIfNeeded().ForPath(ctx, queuePath))
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
		// Quietly: a server may delete the empty container in between.
		must(t, operator.Delete().Quietly().DeletingChildrenIfNeeded().ForPath(ctx, queuePath))
		offer(t, others, "new")
		must(t, client.Sync().ForPath(ctx, queuePath))
		want(t, "new")(q.Poll(ctx))
	})
}
