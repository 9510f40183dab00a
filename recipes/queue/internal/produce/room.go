package produce

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
)

// Room delays puts while a queue has its maximum of nodes. It counts the nodes with an exists in the flight of the
// puts, so that the count includes the puts before it. A small share of the room, and one put at least, may go before
// the next count. So processes that put at the same moment exceed the bound by one put each.
type Room struct {
	producer *Producer
	maxItems int
	turn     chan struct{} // held by the next put; it guards the fields below

	allowedUpTo int       // the number of the last put that the last count allows
	until       time.Time // when the count expires

	changed chan zk.Event
	watcher *callbacks.Watcher // nil if the queue is not watched
	unused  *time.Timer        // ends the watch after a while: the next put may have to wait, too
	session *framework.Session // of the watch
	oneShot bool               // in that session: the server has no persistent watches
}

// roomShares is the number of shares of the room, and roomAge the maximum age of a count beyond its round trip. Eight
// processes that put as fast as they can fill the room before one of them has used the rest of an old share, unless
// that process is delayed for many round trips.
const (
	roomShares = 32
	roomAge    = time.Millisecond
)

// lingering is how long a queue stays watched after the last put that needs the watch: the next one may come soon.
const lingering = time.Second

// eventRoom is the number of events that wait to be looked at.
const eventRoom = 16

// NewRoom returns the room of a queue of at most so many nodes.
func NewRoom(p *Producer, maxItems int) *Room {
	r := &Room{producer: p, maxItems: maxItems, turn: make(chan struct{}, 1)}
	r.changed = make(chan zk.Event, eventRoom)
	r.unused = time.AfterFunc(lingering, r.endWatch)
	r.unused.Stop()
	return r
}

// Put passes x to the producer when there is room for it. Waiting puts are served in their order.
func (r *Room) Put(ctx context.Context, x *Put) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	if err := r.await(ctx); err != nil {
		return err
	}
	return r.producer.Put(ctx, x)
}

// await waits until there is room for a put.
func (r *Room) await(ctx context.Context) error {
	if time.Now().After(r.until) {
		r.allowedUpTo = 0
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(r.producer.open, cancel)
	defer stop()
	for !r.isFound() {
		err := r.tryOnce(within)
		switch {
		case r.producer.open.Err() != nil:
			return node.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
	}
	return nil
}

// isFound reports whether the last count allows another put.
func (r *Room) isFound() bool {
	r.producer.mu.Lock()
	defer r.producer.mu.Unlock()
	return r.producer.accepted < r.allowedUpTo
}

// tryOnce counts the nodes behind all puts. Without room it waits until there may be some.
func (r *Room) tryOnce(ctx context.Context) error {
	p := r.producer
	if err := p.awaitSubmitted(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	flight, behind, startedAt := p.flight, p.accepted-p.unsent, time.Now()
	p.mu.Unlock()
	stat, err := p.Client.CheckExists().Submit(flight, p.Path).Wait(ctx)
	if err == nil {
		share := r.shareOf(stat)
		r.allowedUpTo = behind + share
		r.until = time.Now().Add(time.Since(startedAt) + roomAge)
		if share == 0 {
			err = r.awaitChange(ctx)
		}
	}
	if waitqueue.IsPassing(err) {
		p.reportLoss(flight)
		err = waitqueue.AwaitConnection(ctx, p.Client)
	}
	return err
}

// shareOf returns how many puts a count allows.
func (r *Room) shareOf(stat *zk.Stat) int {
	free := r.maxItems // without a path
	if stat != nil {
		free -= int(stat.NumChildren)
	}
	if free <= 0 {
		return 0
	}
	return max(1, free/roomShares)
}

// awaitChange waits until there may be more room. The first time it starts to watch the queue and returns, so that the
// queue is counted again.
func (r *Room) awaitChange(ctx context.Context) error {
	defer r.unused.Reset(lingering)
	if r.watcher == nil || r.session != r.producer.Client.Session() { // the watch ends with its session
		return r.watch(ctx)
	}
	for {
		select {
		case ev := <-r.changed:
			full := len(r.changed) == eventRoom-1 // what came then was dropped
			switch {
			case full:
				r.unwatch() // its end may be among that
			case ev.Type == zk.EventSession: // the watch stays
			case r.oneShot, ev.Type == zk.EventNotWatching:
				r.watcher = nil
			}
			if full || ev.Type != zk.EventNodeCreated {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch watches the queue. The watch is recursive like a consumer's, because on a server before 3.9 all watches of a
// session on one node have the mode of the last.
func (r *Room) watch(ctx context.Context) (err error) {
	p := r.producer
	r.unwatch() // it may have been set in the next session
	r.watcher = callbacks.NewChanWatcher(r.changed)
	if session := p.Client.Session(); session != r.session { // its servers may know the request
		r.session, r.oneShot = session, false
	}
	if !r.oneShot { // asked once in a session: a server that does not know the request closes the connection
		err = p.Client.Watches().Add().UsingWatcher(r.watcher).ForPath(ctx, p.Path)
		r.oneShot = errors.Is(err, framework.ErrUnimplemented)
	}
	if r.oneShot {
		_, err = p.Client.GetChildren().UsingWatcher(r.watcher).ForPath(ctx, p.Path)
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
func (r *Room) endWatch() {
	select {
	case r.turn <- struct{}{}:
		r.unwatch()
		<-r.turn
	default:
		r.unused.Reset(lingering)
	}
}

// Close ends the watch after the producer was closed.
func (r *Room) Close() {
	r.turn <- struct{}{}
	r.unused.Stop()
	r.unwatch()
	<-r.turn
}

func (r *Room) unwatch() {
	if r.watcher != nil {
		waitqueue.Unwatch(context.WithoutCancel(r.producer.life), r.producer.Client, r.watcher, r.producer.Path)
		r.watcher = nil
	}
}
