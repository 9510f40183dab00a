package queue_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// TestGoexitOfConsumerIsAnErrorOfItsItem ends the goroutine that a consumer is called on, as a failed test does.
func TestGoexitOfConsumerIsAnErrorOfItsItem(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client := clientAt(t, place, chroot)
			got, errs := newBasket(t), newReports()
			var exited atomic.Bool
			q := start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				got.add(item)
				if item == "a" && !exited.Swap(true) {
					runtime.Goexit()
				}
				return nil
			})).OnError(errs.add).BuildQueue()))
			putAll(t, q, "a", "b")
			wantDelivered, wantTimes := 2, 1
			if isLossless(mode) { // it is put back
				wantDelivered, wantTimes = 3, 2
			}
			items := got.await(wantDelivered)
			if n := count(items, "a"); n != wantTimes || count(items, "b") != 1 {
				t.Errorf("delivered are %q", items)
			}
			var about *queue.ItemError
			if err := errs.await(t, 1)[0]; !errors.As(err, &about) || !bytes.Equal(about.Data, []byte("a")) {
				t.Errorf("reported is %v", err)
			}
			awaitEmpty(t, client)
		})
	})
}

// TestGoexitOfErrorHandlerEndsNothing ends the goroutine that OnError is called on.
func TestGoexitOfErrorHandlerEndsNothing(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client := clientAt(t, place, chroot)
			got, errs := newBasket(t), newReports()
			q := start(t, built(mode(builder(t, client, func(_ context.Context, item string) error {
				got.add(item)
				return errors.New("broken")
			})).ErrorMode(queue.DeleteOnError).OnError(func(ctx context.Context, err error) {
				errs.add(ctx, err)
				runtime.Goexit()
			}).BuildQueue()))
			putAll(t, q, "a", "b")
			got.await(2)
			errs.await(t, 2)
			awaitEmpty(t, client)
		})
	})
}

// exiting is a codec that ends its goroutine when it reads "bad".
type exiting struct{ codec.Text }

func (s exiting) Decode(data []byte) (string, error) {
	if string(data) == "bad" {
		runtime.Goexit()
	}
	return s.Text.Decode(data)
}

// TestGoexitOfCodecIsACorruptItem ends the goroutine that a codec is called on.
func TestGoexitOfCodecIsACorruptItem(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
			client := clientAt(t, place, chroot)
			putAll(t, start(t, built(builder(t, client, nil).BuildQueue())), "a", "b", "bad", "c", "d")
			got, errs := newBasket(t), newReports()
			start(t, built(mode(queue.NewBuilder(client, got.consume, exiting{}, queuePath)).OnError(errs.add).
				DeadLetterPath("/dead").BuildQueue()))
			if items := got.await(4); !slices.Equal(items, []string{"a", "b", "c", "d"}) {
				t.Errorf("delivered are %q", items)
			}
			if err := errs.await(t, 1)[0]; !errors.Is(err, queue.ErrCorrupt) {
				t.Errorf("reported is %v", err)
			}
			awaitEmpty(t, client)
			if dead := names(t, client, "/dead"); len(dead) != 1 {
				t.Errorf("dead letters are %q", dead)
			}
		})
	})
}

// count returns how often an item is in a list.
func count(items []string, item string) (n int) {
	for _, i := range items {
		if i == item {
			n++
		}
	}
	return n
}
