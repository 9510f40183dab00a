package queue

import (
	"context"
	"time"
)

// DistributedDelayQueue is a queue whose items are consumed when they are due, by the clock of the consumer, the first
// due first. In Java: DistributedDelayQueue.
type DistributedDelayQueue[T any] struct{ *queue[T] }

// Put is as [DistributedQueue.Put]. An item whose time has passed is due at once; times count in milliseconds.
func (q *DistributedDelayQueue[T]) Put(ctx context.Context, item T, due time.Time) error {
	_, err := q.PutAsync(ctx, item, due)
	return err
}

// PutAsync is as [DistributedQueue.PutAsync].
func (q *DistributedDelayQueue[T]) PutAsync(ctx context.Context, item T, due time.Time) (*PendingPut, error) {
	return q.put(ctx, delayPrefix(due), []T{item})
}

// PutMulti is as [DistributedQueue.PutMulti].
func (q *DistributedDelayQueue[T]) PutMulti(ctx context.Context, due time.Time, items ...T) error {
	return q.putMulti(ctx, delayPrefix(due), items)
}
