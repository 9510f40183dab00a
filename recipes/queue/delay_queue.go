package queue

import (
	"context"
	"time"

	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// DistributedDelayQueue is a queue of items that are consumed when they are due, by the consumer's clock. The item that
// is due first comes first. In Java: DistributedDelayQueue.
type DistributedDelayQueue[T any] struct{ *queue[T] }

// Put works like [DistributedQueue.Put]. An item whose time has passed is due at once. Times have a resolution of one
// millisecond.
func (q *DistributedDelayQueue[T]) Put(ctx context.Context, item T, due time.Time) error {
	_, err := q.PutAsync(ctx, item, due)
	return err
}

// PutAsync works like [DistributedQueue.PutAsync].
func (q *DistributedDelayQueue[T]) PutAsync(ctx context.Context, item T, due time.Time) (*PendingPut, error) {
	return q.put(ctx, node.DelayPrefix(due), []T{item})
}

// PutMulti works like [DistributedQueue.PutMulti].
func (q *DistributedDelayQueue[T]) PutMulti(ctx context.Context, due time.Time, items ...T) error {
	return q.putMulti(ctx, node.DelayPrefix(due), items)
}
