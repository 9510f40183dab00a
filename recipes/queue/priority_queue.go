package queue

import (
	"context"
	"fmt"
	"math"

	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// DistributedPriorityQueue is a queue of items that are consumed by priority, the lowest number first. Items with the
// same priority are consumed in the order in which they were put. A more urgent item overtakes the items that
// were already fetched, after at most minItemsBeforeRefresh of them: see BuildPriorityQueue. In Java:
// DistributedPriorityQueue.
type DistributedPriorityQueue[T any] struct{ *queue[T] }

// Put works like [DistributedQueue.Put]. A priority must fit in 32 bits.
func (q *DistributedPriorityQueue[T]) Put(ctx context.Context, item T, priority int) error {
	_, err := q.PutAsync(ctx, item, priority)
	return err
}

// PutAsync works like [DistributedQueue.PutAsync].
func (q *DistributedPriorityQueue[T]) PutAsync(ctx context.Context, item T, priority int) (*PendingPut, error) {
	prefix, err := prefixOf(priority)
	if err != nil {
		return nil, err
	}
	return q.put(ctx, prefix, []T{item})
}

// PutMulti works like [DistributedQueue.PutMulti].
func (q *DistributedPriorityQueue[T]) PutMulti(ctx context.Context, priority int, items ...T) error {
	prefix, err := prefixOf(priority)
	if err != nil {
		return err
	}
	return q.putMulti(ctx, prefix, items)
}

func prefixOf(priority int) (string, error) {
	if priority < math.MinInt32 || priority > math.MaxInt32 {
		return "", fmt.Errorf("queue: priority %d", priority)
	}
	return node.PriorityPrefix(int32(priority)), nil
}
