package queue

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// delivery is a node that is ours, to be consumed: deleted, or locked.
type delivery[T any] struct {
	name    nodeName
	info    Info
	items   []T
	parts   [][]byte           // the bytes of each
	trailer []byte             // behind them
	origin  *telemetry.Origin  // of the put, nil if it is not known
	session *framework.Session // that the lock belongs to, nil without lock
}

// deliver makes a delivery of what was read.
func (q *queue[T]) deliver(n nodeName, data []byte, stat *zk.Stat) (*delivery[T], error) {
	items, parts, trailer, err := q.deserialize(data)
	if err != nil {
		return nil, err
	}
	info := Info{Path: q.node(n), Put: time.UnixMilli(stat.Ctime)}
	q.kind.describe(&info, n)
	return &delivery[T]{
		name: n, info: info, items: items, parts: parts,
		trailer: trailer, origin: q.told.Extract(traceContextOf(trailer)),
	}, nil
}

func (q *queue[T]) node(n nodeName) string { return zkpath.Join(q.path, n.whole) }

func (q *queue[T]) lock(n nodeName) string { return zkpath.Join(q.lockPath, n.whole) }

// hold notes that the lock of d is ours until settle.
func (q *queue[T]) hold(d *delivery[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held[d.name.whole] = d
}

// letGo is the end of hold. It reports whether d was held.
func (q *queue[T]) letGo(d *delivery[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[d.name.whole] != d {
		return false
	}
	delete(q.held, d.name.whole)
	return true
}

// release gives a delivery to others: the lock is deleted, the item stays.
func (q *queue[T]) release(d *delivery[T]) {
	if q.letGo(d) {
		q.unlock(d.name, d.session)
	}
}

func (q *queue[T]) releaseAll() {
	q.mu.Lock()
	held := q.held
	q.held = make(map[string]*delivery[T])
	q.mu.Unlock()
	for _, d := range held {
		q.unlock(d.name, d.session)
	}
}

// unlock deletes a lock of ours, in the background until it is done.
func (q *queue[T]) unlock(n nodeName, session *framework.Session) {
	if session.Context().Err() != nil {
		return // it went with the session, and may be another's by now
	}
	ctx := q.root
	_ = q.client.Delete().Guaranteed().Quietly().InBackground(lineup.Ignore).ForPath(ctx, q.lock(n))
}

// settle ends a delivery that was worked on in the trace of ctx: its node is deleted with its lock, and the parts of it in
// back, if there are any, are put back. done is told when that has happened.
func (q *queue[T]) settle(ctx context.Context, d *delivery[T], back [][]byte, done func(error)) {
	ctx, settling := q.told.Settle(ctx)
	x := &settlement{name: d.name, session: d.session, done: func(err error) {
		q.letGo(d)
		settling.End(d.name.whole, err)
		done(err)
	}}
	if settling != nil {
		x.cause = ctx
	}
	if len(back) > 0 {
		x.back, _ = encodeItems(d.trailer, back...) // they were read from such bytes
	}
	q.settler.settle(x)
}
