package queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// DistributedIDQueue is a queue of items with ids. Remove removes items by id. Several items may have the same id. In
// Java: DistributedIdQueue.
type DistributedIDQueue[T any] struct{ *queue[T] }

// Put works like [DistributedQueue.Put]. In the node's name each / and | of an id is _, as in Java.
func (q *DistributedIDQueue[T]) Put(ctx context.Context, item T, id string) error {
	_, err := q.PutAsync(ctx, item, id)
	return err
}

// PutAsync works like [DistributedQueue.PutAsync].
func (q *DistributedIDQueue[T]) PutAsync(ctx context.Context, item T, id string) (*PendingPut, error) {
	prefix, err := q.prefixOf(id)
	if err != nil {
		return nil, err
	}
	return q.put(ctx, prefix, []T{item})
}

// PutMulti works like [DistributedQueue.PutMulti].
func (q *DistributedIDQueue[T]) PutMulti(ctx context.Context, id string, items ...T) error {
	prefix, err := q.prefixOf(id)
	if err != nil {
		return err
	}
	return q.putMulti(ctx, prefix, items)
}

func (q *DistributedIDQueue[T]) prefixOf(id string) (string, error) {
	prefix := node.IDPrefix(id)
	return prefix, zkpath.Validate(zkpath.Join(q.paths.Queue, prefix), true)
}

// Remove removes the items with an id that are in the queue and not being consumed, and returns the number of removed
// nodes. The characters /, | and _ are the same in ids. If the answer to a removal is lost, and the node is gone then,
// the error is an [*ItemError] that wraps [ErrUncertain]. That node is not counted, and the items behind it are not
// removed. In Java: remove.
func (q *DistributedIDQueue[T]) Remove(ctx context.Context, id string) (n int, err error) {
	var list zk.Stat
	children, err := q.paths.Client.GetChildren().StoringStatIn(&list).ForPath(ctx, q.paths.Queue)
	if errors.Is(err, zk.ErrNoNode) {
		return 0, waitqueue.CheckChroot(ctx, q.paths.Client)
	}
	if err != nil {
		return 0, err
	}
	prefix := node.IDPrefix(id)
	for _, child := range children {
		name, found := node.ParseName(child)
		if !found || name.Prefix != prefix {
			continue
		}
		removed, err := q.remove(ctx, name, list.Pzxid)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}

// remove deletes a listed node, unless a consumer has it. newest was the zxid of the queue at the time of the list: a
// later node may have the same name, because the path was deleted and recreated.
func (q *queue[T]) remove(ctx context.Context, n node.Name, newest int64) (bool, error) {
	var lost error // of a deletion that may have taken effect
	for {
		stat, err := q.paths.Client.CheckExists().ForPath(ctx, q.paths.Item(n))
		if err != nil {
			return false, q.uncertain(n, lost, err)
		}
		if stat == nil || stat.Czxid > newest {
			return false, q.uncertain(n, lost, lost) // it was removed, by us or by another
		}
		newest = stat.Czxid
		_, err = reply.Get(ctx, q.paths.Client.Transaction().Submit(reply.Once(ctx), q.removeOperations(n, stat.Version)...))
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNoNode) && q.paths.Locks == "":
			return false, q.uncertain(n, lost, lost)
		case errors.Is(err, zk.ErrNoNode): // the item, or the path of the locks
			err = q.paths.Create(ctx)
		case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion): // it is being consumed, or was changed
			return false, nil
		case reply.IsUncertain(ctx, err):
			lost = err
		}
		if waitqueue.IsPassing(err) {
			err = waitqueue.AwaitConnection(ctx, q.paths.Client)
		}
		if err != nil {
			return false, q.uncertain(n, lost, err)
		}
	}
}

// removeOperations returns the operations that delete a node. They create and delete its lock, which fails while a
// consumer holds it.
func (q *queue[T]) removeOperations(n node.Name, version int32) []builders.TransactionOperation {
	op := q.paths.Client.TransactionOp()
	remove := op.Delete().WithVersion(version).ForPath(q.paths.Item(n))
	if q.paths.Locks == "" {
		return []builders.TransactionOperation{remove}
	}
	lock := op.Create().WithMode(builders.Ephemeral).ForPath(q.paths.Lock(n), nil)
	return []builders.TransactionOperation{lock, remove, op.Delete().ForPath(q.paths.Lock(n))}
}

// uncertain returns the error of a removal. The outcome is unknown if the answer to an earlier try was lost.
func (q *queue[T]) uncertain(n node.Name, lost, err error) error {
	if lost == nil {
		return err
	}
	return &ItemError{Path: q.paths.Item(n), Err: errtext.Join(ErrUncertain, errtext.Sent(err, framework.ErrNotSent))}
}
