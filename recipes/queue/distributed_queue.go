package queue

import "context"

// DistributedQueue is a queue: items are consumed in the order in which they were put. One value serves all goroutines
// of a process. In Java: DistributedQueue.
type DistributedQueue[T any] struct{ *queue[T] }

// Put puts an item. It returns when the item is accepted, and waits before that for a place in the window of puts that
// are under way and, in a bounded queue, for room; ctx bounds that waiting, and an error says that the item is not put.
// FlushPuts and the PutListeners report the outcome. In Java: put.
func (q *DistributedQueue[T]) Put(ctx context.Context, item T) error {
	_, err := q.PutAsync(ctx, item)
	return err
}

// PutAsync is Put that returns the pending put, which has the outcome of this item alone.
func (q *DistributedQueue[T]) PutAsync(ctx context.Context, item T) (*PendingPut, error) {
	return q.put(ctx, itemName, []T{item})
}

// PutMulti puts several items in one node: they are consumed one after the other by the same consumer. In Java:
// putMulti, whose MultiItem is a slice here.
func (q *DistributedQueue[T]) PutMulti(ctx context.Context, items ...T) error {
	return q.putMulti(ctx, itemName, items)
}
