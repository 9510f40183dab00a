package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
)

// room delays puts while a queue has its maximum of nodes. It counts the nodes with an exists in the flight of the
// puts, so that the count includes the puts before it. A small share of the room, and one put at least, may go before
// the next count is answered. So processes that put at the same moment exceed the bound by one put each.
type room struct {
	producer *producer
	maxItems int
	turn     chan struct{} // held by the next put; it guards the fields below

	share       int           // how many puts the last count allows
	allowedUpTo int           // the number of the last put that it allows
	until       time.Time     // when the count expires
	roundTrip   time.Duration // duration of the last count that was waited for
	count       *count        // under way, nil if there is none

	changed chan zk.Event
	watcher *callbacks.Watcher // nil if the queue is not watched
	unused  *time.Timer        // ends the watch after a while: the next put may have to wait, too
	session *framework.Session // of the watch
	oneShot bool               // the server has no persistent watches
}

// roomShares is the number of shares of the room, and roomAge the maximum age of a count beyond its round trip. Eight
// processes that put as fast as they can fill the room before one of them has used the rest of an old share, unless
// that process is delayed for many round trips.
const (
	roomShares = 32
	roomAge    = time.Millisecond
)

// count is a request for the number of nodes.
type count struct {
	flight    context.Context
	behind    int // number of puts before it
	startedAt time.Time
	stat      builders.Future[*zk.Stat]
}

func newRoom(p *producer, maxItems int) *room {
	r := &room{producer: p, maxItems: maxItems, turn: make(chan struct{}, 1), changed: make(chan zk.Event, 16)}
	r.unused = time.AfterFunc(lingering, r.endWatch)
	r.unused.Stop()
	return r
}

// put passes x to the producer when there is room for it. Waiting puts are served in their order.
func (r *room) put(ctx context.Context, x *PendingPut) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.producer.open.Done():
		return ErrClosed
	}
	defer func() { <-r.turn }()
	if err := r.await(ctx); err != nil {
		return err
	}
	if err := r.producer.put(ctx, x); err != nil {
		return err
	}
	r.countAhead()
	return nil
}

// await waits until there is room for a put.
func (r *room) await(ctx context.Context) error {
	r.takeEarlyCount()
	if time.Now().Before(r.until) && r.left() > 0 {
		return nil
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(r.producer.open, cancel)
	defer stop()
	for {
		found, err := r.tryOnce(within)
		switch {
		case r.producer.open.Err() != nil:
			return ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case found || err != nil:
			return err
		}
	}
}

// left returns the remaining puts of the share.
func (r *room) left() int {
	r.producer.mu.Lock()
	defer r.producer.mu.Unlock()
	return r.allowedUpTo - r.producer.accepted
}

// takeEarlyCount applies the count that was started ahead, if it is answered.
func (r *room) takeEarlyCount() {
	c := r.count
	if c == nil || !isDone(c.stat) {
		return
	}
	r.count = nil
	if stat, err := c.stat.Wait(r.producer.life); err == nil {
		r.apply(stat, c)
	}
}

// apply applies the answer to a count.
func (r *room) apply(stat *zk.Stat, c *count) {
	free := r.maxItems // without a path
	if stat != nil {
		free -= int(stat.NumChildren)
	}
	r.share = 0
	if free > 0 {
		r.share = max(1, free/roomShares)
	}
	r.allowedUpTo = c.behind + r.share
	r.until = c.startedAt.Add(2*r.roundTrip + roomAge)
}

// countAhead starts the next count while half of the share is left, so that no put has to wait for it.
func (r *room) countAhead() {
	if r.count == nil && r.share > 2 && 2*r.left() <= r.share {
		r.count = r.newCount()
	}
}

func (r *room) newCount() *count {
	p := r.producer
	p.mu.Lock()
	c := &count{flight: p.flight, behind: p.accepted - p.unsent, startedAt: time.Now()}
	p.mu.Unlock()
	c.stat = p.client.CheckExists().Submit(c.flight, p.path)
	return c
}

// tryOnce counts the nodes and reports whether there is room. Without room it waits until there may be some.
func (r *room) tryOnce(ctx context.Context) (found bool, err error) {
	c := r.count
	r.count = nil
	if c == nil {
		if r.share <= 1 { // a count ahead of the last put allows no other
			if err := r.producer.awaitSubmitted(ctx); err != nil {
				return false, err
			}
		}
		r.forgetEvents()
		c = r.newCount()
	}
	stat, err := c.stat.Wait(ctx)
	if err == nil {
		r.roundTrip = time.Since(c.startedAt)
		r.apply(stat, c)
		switch {
		case r.share == 0:
			err = r.awaitChange(ctx)
		case r.left() > 0:
			return true, nil
		default: // our own puts behind the count take the share
			err = r.producer.awaitSubmitted(ctx)
		}
	}
	if waitqueue.IsOutage(err) {
		r.producer.reportLoss(c.flight)
		err = awaitConnection(ctx, r.producer.client)
	}
	return false, err
}

// awaitChange waits until there may be more room. The first time it starts to watch the queue and returns, so that the
// queue is counted again.
func (r *room) awaitChange(ctx context.Context) error {
	defer r.unused.Reset(lingering)
	if r.watcher == nil || r.session != r.producer.client.Session() { // the watch ends with its session
		r.unwatch()
		return r.watch(ctx)
	}
	for {
		select {
		case ev := <-r.changed:
			if r.oneShot {
				r.watcher = nil
			}
			full := len(r.changed) == cap(r.changed)-1 // what came then was dropped
			if full || ev.Type != zk.EventNodeCreated {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// forgetEvents drops the events before a count, because the count includes them.
func (r *room) forgetEvents() {
	for len(r.changed) > 0 {
		if ev := <-r.changed; r.oneShot && ev.Type != zk.EventSession {
			r.watcher = nil
		}
	}
}

// watch watches the queue. The watch is recursive like a consumer's, because on a server before 3.9 all watches of a
// session on one node have the mode of the last.
func (r *room) watch(ctx context.Context) (err error) {
	p := r.producer
	r.watcher, r.session = callbacks.NewChanWatcher(r.changed), p.client.Session()
	if !r.oneShot {
		err = p.client.Watches().Add().UsingWatcher(r.watcher).ForPath(ctx, p.path)
		r.oneShot = errors.Is(err, framework.ErrUnimplemented)
	}
	if r.oneShot {
		_, err = p.client.GetChildren().UsingWatcher(r.watcher).ForPath(ctx, p.path)
	}
	if err != nil {
		r.unwatch()
	}
	if errors.Is(err, zk.ErrNoNode) { // a missing path counts as room
		return nil
	}
	return err
}

// endWatch ends the watch if no put waits for room.
func (r *room) endWatch() {
	select {
	case r.turn <- struct{}{}:
		r.unwatch()
		<-r.turn
	default:
		r.unused.Reset(lingering)
	}
}

// close ends the watch after the producer was closed.
func (r *room) close() {
	r.turn <- struct{}{}
	r.unused.Stop()
	r.unwatch()
	<-r.turn
}

func (r *room) unwatch() {
	if r.watcher != nil {
		waitqueue.Unwatch(context.WithoutCancel(r.producer.life), r.producer.client, r.watcher, r.producer.path)
		r.watcher = nil
	}
}
