package queue

import (
	"context"
	"fmt"
	"math"
)

// DistributedPriorityQueue is a queue whose items are consumed by priority, the lowest number first, and those of one
// priority in the order in which they were put. An item that is put while others are being consumed comes before the
// rest of them, at the latest after the number of items that BuildPriorityQueue was given. In Java:
// DistributedPriorityQueue.
type DistributedPriorityQueue[T any] struct{ *queue[T] }

// Put is as [DistributedQueue.Put]. A priority must fit in 32 bits.
func (q *DistributedPriorityQueue[T]) Put(ctx context.Context, item T, priority int) error {
	_, err := q.PutAsync(ctx, item, priority)
	return err
}

// PutAsync is as [DistributedQueue.PutAsync].
func (q *DistributedPriorityQueue[T]) PutAsync(ctx context.Context, item T, priority int) (*PendingPut, error) {
	prefix, err := prefixOf(priority)
	if err != nil {
		return nil, err
	}
	return q.put(ctx, prefix, []T{item})
}

// PutMulti is as [DistributedQueue.PutMulti].
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
	return priorityPrefix(int32(priority)), nil
}
