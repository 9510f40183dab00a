package queue

import (
	"context"

	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// DistributedQueue is a queue of items that are consumed in the order in which they were put. One value serves all
// goroutines of a process. In Java: DistributedQueue.
type DistributedQueue[T any] struct{ *queue[T] }

// Put puts an item and returns when the item is accepted. Before that it waits for a place in the window of puts under
// way and, in a bounded queue, for room. ctx bounds that wait. After an error the item is not put. FlushPuts and the
// put listeners report the outcome. In Java: put.
func (q *DistributedQueue[T]) Put(ctx context.Context, item T) error {
	_, err := q.PutAsync(ctx, item)
	return err
}

// PutAsync works like Put, and returns the pending put with the outcome of this item alone.
func (q *DistributedQueue[T]) PutAsync(ctx context.Context, item T) (*PendingPut, error) {
	return q.put(ctx, node.ItemPrefix, []T{item})
}

// PutMulti puts several items in one node. One consumer consumes them, one after the other. In Java: putMulti, with a
// MultiItem instead of a slice.
func (q *DistributedQueue[T]) PutMulti(ctx context.Context, items ...T) error {
	return q.putMulti(ctx, node.ItemPrefix, items)
}
