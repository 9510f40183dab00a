package queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// removal claims an item without a lock: it is ours if it is we who delete it.
type removal[T any] struct {
	q       *queue[T]
	name    nodeName
	stat    zk.Stat
	read    builders.Future[[]byte]
	data    []byte
	err     error // of reading
	d       *delivery[T]
	batch   *removals // that it goes with, nil if it goes alone
	removed builders.Future[struct{}]
}

// look begins to read an item. The removal is submitted when it can be read.
func (q *queue[T]) look(flight context.Context, n nodeName) *removal[T] {
	r := &removal[T]{q: q, name: n}
	r.read = q.client.GetData().StoringStatIn(&r.stat).Submit(flight, q.node(n))
	return r
}

func (r *removal[T]) node() nodeName { return r.name }

// isReadable waits for the item and reports whether it is one that can be consumed.
func (r *removal[T]) isReadable() bool {
	r.data, r.err = r.read.Wait(r.q.root)
	if r.err == nil {
		r.d, r.err = r.q.deliver(r.name, r.data, &r.stat)
	}
	return r.d != nil
}

func (r *removal[T]) submit(flight context.Context) {
	r.removed = r.q.client.Delete().WithVersion(r.stat.Version).Submit(flight, r.q.node(r.name))
}

func (r *removal[T]) isDone() bool {
	switch {
	case r.d == nil:
		return true
	case r.batch != nil:
		return isDone(r.batch.sent)
	}
	return isDone(r.removed)
}

// answer waits for the answer to the removal.
func (r *removal[T]) answer() error {
	if b := r.batch; b != nil {
		_, err := b.sent.Wait(r.q.root)
		if err == nil || lineup.IsOutage(err) {
			return err
		}
		b.split()
	}
	_, err := r.removed.Wait(r.q.root)
	return err
}

func (r *removal[T]) end() (*delivery[T], error) {
	err := r.err
	if r.d != nil {
		err = r.answer()
	}
	switch {
	case err == nil:
		return r.d, nil
	case lineup.IsOutage(err):
		return nil, err
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion): // the latter will be listed again
	case isCorrupt(err):
		r.q.spoil(r.name, r.data, r.stat.Version, nil, err)
	default:
		r.q.leaveOut(r.name, r.data, err)
	}
	return nil, nil
}

func (r *removal[T]) resolve() *delivery[T] {
	if r.d == nil {
		return nil
	}
	err := r.answer()
	for lineup.IsOutage(err) && !errors.Is(err, framework.ErrNotSent) {
		if awaitConnection(r.q.working, r.q.client) != nil {
			break
		}
		err = r.q.client.Delete().WithVersion(r.stat.Version).ForPath(builders.InOneFlight(r.q.root), r.q.node(r.name))
		if errors.Is(err, framework.ErrNotSent) {
			err = framework.ErrConnectionLoss // of the first, which was sent
		}
		if err == nil {
			return r.d
		}
		if errors.Is(err, zk.ErrNoNode) { // by us, or by another
			r.q.reportItem(r.q.root, r.name.whole, r.data, ErrUncertain)
			return nil
		}
	}
	switch {
	case err == nil:
		return r.d
	case lineup.IsOutage(err) && !errors.Is(err, framework.ErrNotSent):
		r.q.reportItem(r.q.root, r.name.whole, r.data, errtext.Join(ErrUncertain, err))
	}
	return nil
}

// removals are several removals in one transaction, which costs the server little more than one. All of the items become
// ours, or none.
type removals struct {
	sent  builders.Future[[]callbacks.OperationResult]
	split func() // tries each by itself: it is enough for one to be another's
}

func (q *queue[T]) removeTogether(flight context.Context, of []*removal[T], failed func()) {
	b := &removals{split: func() {
		failed()
		for _, r := range of {
			r.batch = nil
			r.submit(flight)
		}
	}}
	ops := make([]builders.TransactionOperation, len(of))
	for i, r := range of {
		r.batch = b
		ops[i] = q.client.TransactionOp().Delete().WithVersion(r.stat.Version).ForPath(q.node(r.name))
	}
	b.sent = q.client.Transaction().Submit(flight, ops...)
}
