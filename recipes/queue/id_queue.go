package queue

import (
	"context"
	"errors"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/zkpath"
)

// DistributedIDQueue is a queue whose items have ids, by which they can be removed. Several may have the same. In Java:
// DistributedIdQueue.
type DistributedIDQueue[T any] struct{ *queue[T] }

// Put is as [DistributedQueue.Put]. In the node's name each / and | of an id is _, as in Java.
func (q *DistributedIDQueue[T]) Put(ctx context.Context, item T, id string) error {
	return q.putAll(ctx, []T{item}, id)
}

// PutMulti is as [DistributedQueue.PutMulti].
func (q *DistributedIDQueue[T]) PutMulti(ctx context.Context, id string, items ...T) error {
	return q.putAll(ctx, append([]T(nil), items...), id)
}

// PutMultiSeq is as [DistributedQueue.PutMultiSeq].
func (q *DistributedIDQueue[T]) PutMultiSeq(ctx context.Context, id string, items iter.Seq[T]) error {
	return q.putAll(ctx, collect(items), id)
}

func (q *DistributedIDQueue[T]) putAll(ctx context.Context, items []T, id string) error {
	prefix := idPrefix(id)
	if err := zkpath.Validate(zkpath.Join(q.path, prefix), true); err != nil {
		return err
	}
	return q.put(ctx, prefix, items)
}

// Remove removes the items with an id that are in the queue and not being consumed, and returns how many nodes these
// were. Ids that differ only where one has /, | or _ and the other another of these are the same. In Java: remove.
func (q *DistributedIDQueue[T]) Remove(ctx context.Context, id string) (n int, err error) {
	children, err := q.client.GetChildren().ForPath(ctx, q.path)
	if errors.Is(err, zk.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	prefix := idPrefix(id)
	for _, child := range children {
		name, found := parseName(child)
		if !found || name.prefix != prefix {
			continue
		}
		removed, err := q.remove(ctx, name)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}

// remove deletes an item, unless somebody is consuming it.
func (q *queue[T]) remove(ctx context.Context, n nodeName) (bool, error) {
	op := q.client.TransactionOp()
	ops := []builders.TransactionOperation{op.Delete().ForPath(q.node(n))}
	if q.lockPath != "" { // who consumes it has the lock, and this is it only for a moment
		lock := op.Create().WithMode(builders.Ephemeral).ForPath(q.lock(n), nil)
		ops = []builders.TransactionOperation{lock, ops[0], op.Delete().ForPath(q.lock(n))}
	}
	_, err := q.client.Transaction().ForOperations(ctx, ops...)
	switch {
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}
