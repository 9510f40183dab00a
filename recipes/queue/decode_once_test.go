package queue_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// countingCodec counts the items that it reads.
type countingCodec struct {
	codec.Text
	read *atomic.Int64
}

func (s countingCodec) Decode(data []byte) (string, error) {
	s.read.Add(1)
	return s.Text.Decode(data)
}

// A codec may fail the next time: an item that is claimed has to be delivered.
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
				counting := countingCodec{read: new(atomic.Int64)}
				q := start(t, built(mode(queue.NewBuilder[string](client, consumer, counting, queuePath)).BuildQueue()))
				putAll(t, q, "a")
				if pulled {
					ctx, cancel := context.WithCancel(testenv.Context(t))
					defer cancel()
					next, stop := pullAll(ctx, q)
					defer stop()
					got.add(next(t))
				}
				got.await(1)
				if n := counting.read.Load(); n != 1 {
					t.Errorf("the item is read %d times", n)
				}
			})
		}
	})
}
