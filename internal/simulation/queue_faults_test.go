package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// queueFaults affect the nodes of queues.
var queueFaults = []fault{
	{name: "queue is deleted", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.deleteQueue(random, false)
	}},
	{name: "queue is deleted and made anew", strike: func(w *world, random *rand.Rand) (string, func()) {
		return w.deleteQueue(random, true)
	}},
	{name: "locks of a queue are deleted", strike: func(w *world, random *rand.Rand) (string, func()) {
		u := w.pickQueue(random, true)
		if u == nil {
			return "", nil
		}
		return u.deleteTree(u.locks)
	}},
	{name: "queue is protected", strike: func(w *world, random *rand.Rand) (string, func()) {
		u := w.pickQueue(random, false)
		if u == nil {
			return "", nil
		}
		return w.protect(random, u.path)
	}},
	{name: "locks of a queue are protected", strike: func(w *world, random *rand.Rand) (string, func()) {
		u := w.pickQueue(random, true)
		if u == nil {
			return "", nil
		}
		return w.protect(random, u.locks)
	}},
	{name: "item is protected", strike: func(w *world, random *rand.Rand) (string, func()) {
		leader, err := w.cluster.Leader()
		if err != nil {
			return "", nil
		}
		var items []string
		for _, u := range w.queues {
			for _, name := range leader.Children(u.path) {
				items = append(items, zkpath.Join(u.path, name))
			}
		}
		if len(items) == 0 {
			return "", nil
		}
		return w.protect(random, pick(random, items))
	}},
}

// pickQueue returns one of the queues, or nil. If locked is set, it has a lock path.
func (w *world) pickQueue(random *rand.Rand, locked bool) *workQueue {
	var some []*workQueue
	for _, u := range w.queues {
		if u.locks != "" || !locked {
			some = append(some, u)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return pick(random, some)
}

// deleteQueue deletes the path of a queue with all its nodes. It may create the path again at once.
func (w *world) deleteQueue(random *rand.Rand, anew bool) (what string, undo func()) {
	u := w.pickQueue(random, false)
	if u == nil {
		return "", nil
	}
	what, undo = u.deleteTree(u.path)
	if anew {
		_ = w.retryOutage(func(ctx context.Context) error {
			_, err := w.operator.Create().ForPath(ctx, u.path, nil)
			return err
		})
	}
	return what, undo
}

// deleteTree deletes a path of a queue.
func (u *workQueue) deleteTree(path string) (what string, undo func()) {
	over := u.ledger.wipe()
	err := u.world.retryOutage(func(ctx context.Context) error {
		return u.world.operator.Delete().DeletingChildrenIfNeeded().Quietly().ForPath(ctx, path)
	})
	if leader, err := u.world.cluster.Leader(); err == nil {
		u.ledger.observe(leader) // before over
	}
	over()
	return fmt.Sprintf("%s, error %v", path, err), nil
}

// protect takes some of the permissions on a node away.
func (w *world) protect(random *rand.Rand, path string) (what string, undo func()) {
	return w.protectTo(path, pick(random, []int32{
		0, zk.PermRead, zk.PermRead | zk.PermCreate, zk.PermRead | zk.PermDelete, zk.PermCreate | zk.PermDelete,
	}))
}

// protectTo leaves some of the permissions on a node.
func (w *world) protectTo(path string, left int32) (what string, undo func()) {
	over := w.refuse()
	if err := w.setACL(path, left|zk.PermAdmin); err != nil {
		over()
		return "", nil
	}
	return fmt.Sprintf("%s, permissions %#x", path, left), func() {
		defer over()
		if err := w.setACL(path, zk.PermAll); err != nil && !errors.Is(err, zk.ErrNoNode) && w.ctx.Err() == nil {
			w.violate("%s stays protected: %v", path, err)
		}
	}
}

func (w *world) setACL(path string, permissions int32) error {
	return w.retryOutage(func(ctx context.Context) error {
		_, err := w.operator.SetACL().WithACL(zk.WorldACL(permissions)...).ForPath(ctx, path)
		return err
	})
}

// retryOutage calls fn until there is an answer, as an operator does.
func (w *world) retryOutage(fn func(ctx context.Context) error) error {
	for {
		err := fn(builders.Pipelined(w.ctx))
		if !isOutage(err) || !wait(w.ctx, tick) {
			return err
		}
	}
}

// isOutage reports whether there was no answer.
func isOutage(err error) bool {
	return errors.Is(err, framework.ErrConnectionLoss) || errors.Is(err, framework.ErrOperationTimeout) ||
		errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}
