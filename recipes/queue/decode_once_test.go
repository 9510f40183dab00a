package queue_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// countingSerializer counts the items that it reads.
type countingSerializer struct {
	queue.String
	read *atomic.Int64
}

func (s countingSerializer) Deserialize(data []byte) (string, error) {
	s.read.Add(1)
	return s.String.Deserialize(data)
}

// A serializer may fail the next time: an item that is claimed has to be delivered.
func TestItemIsReadOnceForADelivery(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		for _, pulled := range []bool{false, true} {
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				client, got := clientAt(t, place, chroot), newBasket(t)
				var consumer queue.Consumer[string] = got.consume
				if pulled {
					consumer = nil
				}
				serializer := countingSerializer{read: new(atomic.Int64)}
				q := start(t, built(mode(queue.NewBuilder[string](client, consumer, serializer, queuePath)).BuildQueue()))
				putAll(t, q, "a")
				if pulled {
					ctx, cancel := context.WithCancel(testenv.Context(t))
					defer cancel()
					next, stop := pullAll(ctx, q)
					defer stop()
					got.add(next(t))
				}
				got.await(1)
				if n := serializer.read.Load(); n != 1 {
					t.Errorf("the item is read %d times", n)
				}
			})
		}
	})
}
