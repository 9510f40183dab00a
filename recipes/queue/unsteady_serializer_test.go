package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/recipes/queue"
)

// unsteadySerializer fails to read the number-th time.
type unsteadySerializer struct {
	queue.String
	number int64
	read   *atomic.Int64
}

var errUnsteady = errors.New("unsteady")

func (s unsteadySerializer) Deserialize(data []byte) (string, error) {
	if s.read.Add(1) == s.number {
		return "", errUnsteady
	}
	return s.String.Deserialize(data)
}

// TestItemReadOnceOnlyIsReportedAndDeliveredLater fails to read an item that is claimed already.
func TestItemReadOnceOnlyIsReportedAndDeliveredLater(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, mode modifier) {
		for _, pulled := range []bool{false, true} {
			testenv.InVirtualTime(t, func(t *testing.T, place testenv.Place, chroot string) {
				client, got, errs := clientAt(t, place, chroot), newBasket(t), newReports()
				var consumer queue.Consumer[string] = got.consume
				if pulled {
					consumer = nil
				}
				serializer := unsteadySerializer{number: 2, read: new(atomic.Int64)}
				b := queue.NewBuilder[string](client, consumer, serializer, queuePath).OnError(errs.add)
				q := start(t, built(mode(b).BuildQueue()))
				putAll(t, q, "a")
				if pulled {
					ctx, cancel := context.WithCancel(testenv.Context(t))
					defer cancel()
					next, stop := pullAll(ctx, q)
					defer stop()
					got.add(next(t))
				}
				if items := got.await(1); items[0] != "a" {
					t.Errorf("delivered are %q", items)
				}
				var about *queue.ItemError
				if err := errs.await(t, 1)[0]; !errors.Is(err, errUnsteady) || !errors.As(err, &about) {
					t.Errorf("reported is %v", err)
				}
				awaitEmpty(t, client)
			})
		}
	})
}
