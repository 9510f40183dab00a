package queue

import (
	"context"
	"fmt"
	"iter"
	"math"
)

// DistributedPriorityQueue is a queue whose items are consumed by priority, the lowest number first, and those of one
// priority in the order in which they were put. An item that is put while others are being consumed comes before the
// rest of them, at the latest after the number of items that BuildPriorityQueue was given. In Java:
// DistributedPriorityQueue.
type DistributedPriorityQueue[T any] struct{ *queue[T] }

// Put is as [DistributedQueue.Put]. A priority must fit in 32 bits.
func (q *DistributedPriorityQueue[T]) Put(ctx context.Context, item T, priority int) error {
	return q.putAll(ctx, []T{item}, priority)
}

// PutMulti is as [DistributedQueue.PutMulti].
func (q *DistributedPriorityQueue[T]) PutMulti(ctx context.Context, priority int, items ...T) error {
	return q.putAll(ctx, append([]T(nil), items...), priority)
}

// PutMultiSeq is as [DistributedQueue.PutMultiSeq].
func (q *DistributedPriorityQueue[T]) PutMultiSeq(ctx context.Context, priority int, items iter.Seq[T]) error {
	return q.putAll(ctx, collect(items), priority)
}

func (q *DistributedPriorityQueue[T]) putAll(ctx context.Context, items []T, priority int) error {
	if priority < math.MinInt32 || priority > math.MaxInt32 {
		return fmt.Errorf("queue: priority %d", priority)
	}
	return q.put(ctx, priorityPrefix(int32(priority)), items)
}
