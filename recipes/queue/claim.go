package queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// claim is a try to make an item ours.
type claim[T any] interface {
	isDone() bool
	// end waits for the answer: nil says that the item is another's, an error that there was none.
	end() (*delivery[T], error)
	// resolve is called instead of, or after, an end without an answer, and finds it out. What is not ours then will be
	// listed again, if it is still there.
	resolve() *delivery[T]
	node() nodeName
}

// locking claims an item by creating its lock.
type locking[T any] struct {
	q      *queue[T]
	name   nodeName
	lock   builders.Future[string]
	locked zk.Stat
	read   builders.Future[[]byte]
	stat   zk.Stat
}

func (l *locking[T]) node() nodeName { return l.name }

// begin reads behind the lock: another may have consumed the item before.
func (l *locking[T]) begin(flight context.Context) {
	create := l.q.client.Create().WithMode(builders.Ephemeral).StoringStatIn(&l.locked)
	l.lock = create.Submit(flight, l.q.lock(l.name), nil)
	l.read = l.q.client.GetData().StoringStatIn(&l.stat).Submit(flight, l.q.node(l.name))
}

func (l *locking[T]) isDone() bool { return isDone(l.read) && isDone(l.lock) }

func (l *locking[T]) end() (*delivery[T], error) {
	_, err := l.lock.Wait(l.q.root)
	data, readErr := l.read.Wait(l.q.root)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil, nil
	case errors.Is(err, zk.ErrNoNode): // the path of the locks
		return nil, l.q.ensure(l.q.root)
	case err != nil:
		return nil, err
	case lineup.IsOutage(readErr):
		return nil, readErr
	}
	session := l.q.client.Session()
	if session == nil || session.ID() != l.locked.EphemeralOwner {
		return nil, nil // the lock is gone with its session
	}
	d := &delivery[T]{}
	if readErr == nil {
		d, readErr = l.q.deliver(l.name, data, &l.stat)
	}
	switch {
	case readErr == nil:
		d.session = session
		l.q.hold(d)
		return d, nil
	case isCorrupt(readErr):
		l.q.spoil(l.name, data, l.stat.Version, session, readErr)
	case !errors.Is(readErr, zk.ErrNoNode):
		l.q.leaveOut(l.name, data, readErr)
		fallthrough
	default:
		l.q.unlock(l.name, session)
	}
	return nil, nil
}

// resolve deletes a lock that may be ours: the item is listed again, and locked again.
func (l *locking[T]) resolve() *delivery[T] {
	_, err := l.lock.Wait(l.q.root)
	if errors.Is(err, framework.ErrNotSent) || err != nil && !lineup.IsOutage(err) {
		return nil
	}
	for {
		if awaitConnection(l.q.working, l.q.client) != nil {
			return nil
		}
		session := l.q.client.Session()
		if session == nil {
			continue
		}
		stat, err := l.q.client.CheckExists().ForPath(builders.InOneFlight(l.q.root), l.q.lock(l.name))
		if lineup.IsOutage(err) {
			continue
		}
		if stat != nil && stat.EphemeralOwner == session.ID() {
			l.q.unlock(l.name, session)
		}
		return nil
	}
}

func isDone[V any](f builders.Future[V]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}
