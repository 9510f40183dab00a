package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

const deadPath = "/dead"

func TestItemThatFailsTooOftenGoesToTheDeadLetters(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		got, errs, broken := newBasket(t), newReports(), errors.New("broken")
		b := builder(t, client, func(_ context.Context, item string) error {
			got.add(item)
			if item == "good" {
				return nil
			}
			return broken
		}).LockPath(lockPath).DeadLetterPath(deadPath).MaxDeliveries(3).OnError(errs.add)
		q := start(t, built(b.BuildPriorityQueue(0)))
		must(t, q.Put(ctx, "bad", 7))
		must(t, q.Put(ctx, "good", 8))
		all := errs.await(t, 3)
		for _, err := range all {
			if !errors.Is(err, broken) {
				t.Errorf("reported is %v", err)
			}
		}
		if last := all[2].Error(); !strings.Contains(last, "moved to the dead letters after 3 deliveries") {
			t.Errorf("reported last is %s", last)
		}
		awaitEmpty(t, client)
		letters := names(t, client, deadPath)
		if len(letters) != 1 || !strings.HasPrefix(letters[0], "queue-100000007") {
			t.Fatalf("letters %q", letters)
		}
		data, err := client.GetData().ForPath(ctx, deadPath+"/"+letters[0])
		must(t, err)
		if strings.Contains(string(data), "CDC") {
			t.Errorf("the letter is %q", data)
		}
		// The dead letters are a queue, whose deliveries count anew.
		again := newBasket(t)
		dead := queue.NewBuilder(client, again.consume, codec.Text{}, deadPath)
		start(t, built(dead.BuildPriorityQueue(0)))
		if diff := cmp.Diff([]string{"bad"}, again.await(1)); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	})
}

// TestItemsPutTogetherAreCountedOneByOne has one of several items fail too often, and the one behind it once.
func TestItemsPutTogetherAreCountedOneByOne(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client, got, failures := testenv.Context(t), clientAt(t, place, chroot), newBasket(t), map[string]int{"once": 2}
		q := start(t, built(builder(t, client, func(_ context.Context, item string) error {
			got.add(item)
			if failures[item]++; item == "bad" || failures[item] == 3 {
				return errors.New("broken")
			}
			return nil
		}).LockPath(lockPath).DeadLetterPath(deadPath).MaxDeliveries(2).OnError(newReports().add).BuildQueue()))
		must(t, q.PutMulti(ctx, "good", "bad", "once", "behind"))
		want := []string{"good", "bad", "bad", "once", "once", "behind"}
		got.await(len(want))
		awaitEmpty(t, client)
		if diff := cmp.Diff(want, got.await(0)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		dead := newBasket(t)
		start(t, built(queue.NewBuilder(client, dead.consume, codec.Text{}, deadPath).BuildQueue()))
		if diff := cmp.Diff([]string{"bad"}, dead.await(1)); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
	})
}

func TestPausesOfFailuresDoNotHoldBackOtherItems(t *testing.T) {
	t.Parallel()
	testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
		ctx, client := testenv.Context(t), clientAt(t, place, chroot)
		var times []time.Time
		got := newBasket(t)
		q := start(t, built(builder(t, client, func(_ context.Context, item string) error {
			got.add(item)
			if item == "bad" {
				times = append(times, time.Now())
				return errors.New("broken")
			}
			return nil
		}).LockPath(lockPath).OnError(newReports().add).BuildQueue()))
		must(t, q.Put(ctx, "bad"))
		begun := time.Now()
		for time.Since(begun) < 5*time.Second {
			put, n := time.Now(), len(got.await(0))
			must(t, q.Put(ctx, "good"))
			for items := got.await(n + 1); !slices.Contains(items[n:], "good"); {
				items = got.await(len(items) + 1)
			}
			if took := time.Since(put); !testenv.Real() && took > 100*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			<-time.After(100 * time.Millisecond)
		}
		must(t, q.Close())
		if n := len(times); n < 5 || n > 10 {
			t.Errorf("delivered %d times in 5 s", n)
		}
	})
}

func TestMaxDeliveriesNeedsDeadLetters(t *testing.T) {
	t.Parallel()
	b := queue.NewBuilder[string](nil, nil, codec.Text{}, queuePath)
	limited := b.LockPath(lockPath).DeadLetterPath(deadPath)
	for _, c := range []struct {
		name, lacks string
		b           queue.Builder[string]
	}{
		{"without dead letters", "DeadLetterPath", b.LockPath(lockPath).MaxDeliveries(2)},
		{"without locks", "LockPath", b.DeadLetterPath(deadPath).MaxDeliveries(2)},
		{"with deletion", "RequeueOnError", limited.ErrorMode(queue.DeleteOnError).MaxDeliveries(2)},
		{"a negative number", "-1", limited.MaxDeliveries(-1)},
	} {
		if _, err := c.b.BuildQueue(); err == nil || !strings.Contains(err.Error(), c.lacks) {
			t.Errorf("%s: the error is %v, want one that names %s", c.name, err, c.lacks)
		}
	}
}
