package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// elementFetcher claims the elements of a simple queue, one for each call that wants one. The calls share what is known
// of the queue. While one of them waits, the elements are watched, and what happens comes without a request.
type elementFetcher struct {
	place *place
	watch *queueWatch
	obs   *telemetry.Queue

	demand atomic.Int64  // the calls that want an element
	waiter chan struct{} // of the one of them that waits until there is one
	turn   chan struct{} // held while the first is sought; it guards what follows those below mu

	mu         sync.Mutex
	calls      int               // under way
	claimed    map[*element]bool // whose outcome is not known yet; true if a list had it
	isWatched  bool              // there are watches to be removed
	unwatch    *time.Timer       // removes them, nil before the first
	lostClaims int               // that others were faster with
	isStale    bool              // what is known is not to be relied on

	watching    bool  // all elements are watched, since before the list
	pathOnly    bool  // the path is watched, since before the reading
	unsupported bool  // the server has no such watches
	lastEmpty   bool  // there was nothing in the last list
	listed      bool  // what is known is complete, but for what was created since
	newest      int64 // zxid of the list: neither the path nor an element in it is younger
	backlog     backlog
	reading     []*element // in order
	misses      int        // elements in a row that were gone
	yielding    yielding
	ensureAt    time.Time // when the path is created that was deleted; zero if it is there
}

func newElementFetcher(client Client, path string) *elementFetcher {
	p := &place{client: client, path: path}
	f := &elementFetcher{
		place: p, watch: newQueueWatch(p), waiter: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		claimed: make(map[*element]bool), backlog: backlog{kind: elements},
	}
	f.watch.isOfAll = true
	f.backlog.clear()
	return f
}

// call is one call of a method.
type call struct {
	ctx     context.Context
	waitCtx context.Context // bounds the waiting for an element, and for a connection before there is one
	waits   bool            // for an element
	began   time.Time       // what was read before is not good enough

	yieldUntil time.Time // the end of a pause, zero if there is none
}

// enter begins a call. leave has to follow.
func (f *elementFetcher) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.unwatch != nil {
		f.unwatch.Stop()
	}
}

// leave ends a call. After the last one the watches are removed.
func (f *elementFetcher) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls--
	switch {
	case f.calls > 0 || !f.isWatched:
	case f.unwatch == nil:
		f.unwatch = time.AfterFunc(lingering, f.removeWatches)
	default:
		f.unwatch.Reset(lingering)
	}
}

// removeWatches removes the watches if there is no call under way.
func (f *elementFetcher) removeWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == 0 && f.isWatched {
		f.watch.remove(context.Background()) //nolint:forbidigo // it goes on in the background
		f.isWatched, f.watching, f.pathOnly = false, false, false
	}
}

// take claims the first element and waits until it is known that it is ours. It returns nil if there is none, as far as
// the call does not wait for one.
func (f *elementFetcher) take(c *call) (*element, error) {
	f.enter()
	defer f.leave()
	for {
		c.began = time.Now()
		e, err := f.next(c)
		if e == nil {
			return nil, err
		}
		err = e.end(c.ctx)
		if errors.Is(err, errTaken) {
			f.obs.ClaimLost(c.ctx, telemetry.Taken)
		}
		f.ended(e, err)
		if err == nil {
			return e, nil
		}
		if !errors.Is(err, errTaken) && !errors.Is(err, errChanged) {
			return nil, err
		}
	}
}

// ended notes the outcome of a claim, for the call whose turn it is.
func (f *elementFetcher) ended(e *element, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wasListed := f.claimed[e]
	delete(f.claimed, e)
	switch {
	case err == nil && !wasListed:
		return
	case errors.Is(err, errTaken) && !wasListed:
		f.lostClaims++
	default:
		f.isStale = true
	}
	f.watch.nudge()
}

// next claims the first element, as soon as there is one if the call waits. Of those who share the value one waits for
// it, the others for that one.
func (f *elementFetcher) next(c *call) (*element, error) {
	f.demand.Add(1)
	defer f.demand.Add(-1)
	if !c.waits {
		return f.claim(c)
	}
	select {
	case f.waiter <- struct{}{}:
		defer func() { <-f.waiter }()
	case <-c.waitCtx.Done():
		return nil, c.waitCtx.Err()
	}
	for {
		e, err := f.claim(c)
		if e != nil || err != nil {
			return e, err
		}
		if err := c.waitCtx.Err(); err != nil {
			return nil, err
		}
		f.watch.await(c.waitCtx, c.yieldUntil)
	}
}

// peek returns the first element, nil if there is none.
func (f *elementFetcher) peek(c *call) (first *element, err error) {
	f.enter()
	defer f.leave()
	err = f.inTurn(c, func() (err error) {
		if first, err = f.first(c); first != nil {
			first.readAt = time.Time{} // the bytes are the caller's: the next call reads them again
		}
		return err
	})
	return first, err
}

// claim submits the deletion of the first element and returns it, nil if there is none. A list behind it is one without
// it.
func (f *elementFetcher) claim(c *call) (claimed *element, err error) {
	err = f.inTurn(c, func() error {
		e, err := f.first(c)
		if e == nil {
			return err
		}
		if err := e.delete(c.ctx); err != nil {
			return err
		}
		f.reading, f.misses = f.reading[1:], 0
		f.mu.Lock()
		f.claimed[e] = false
		f.mu.Unlock()
		claimed = e
		return nil
	})
	return claimed, err
}

// inTurn calls fn when nobody else looks at the queue, and again after a lost connection.
func (f *elementFetcher) inTurn(c *call, fn func() error) error {
	return retryOutage(c.waitCtx, f.place.client, func() error { return f.onceInTurn(c, fn) })
}

func (f *elementFetcher) onceInTurn(c *call, fn func() error) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	err := fn()
	if waitqueue.IsOutage(err) {
		f.forget()
	}
	return err
}

// takeNews takes the news. Without a call that waits they are passed on to the one that does.
func (f *elementFetcher) takeNews(c *call) {
	all, missed := f.watch.take()
	if !c.waits && (missed || len(all) > 0) {
		f.watch.nudge()
	}
	f.mu.Lock()
	lost, isStale := f.lostClaims, f.isStale
	f.lostClaims, f.isStale = 0, false
	f.mu.Unlock()
	for range lost {
		f.yielding.lost()
	}
	if f.pathOnly && !f.watching && slices.Contains(all, news{what: emptied}) {
		missed = true
	}
	if missed && (f.watching || f.pathOnly) { // the watches are added again
		f.lastEmpty = f.lastEmpty || f.watching
		f.watching, f.pathOnly, isStale = false, false, true
	}
	if isStale {
		f.forget()
	}
	if !f.watching || !f.listed {
		return
	}
	for _, n := range all {
		switch {
		case n.what == emptied:
			f.backlog.clear()
			f.reading, f.ensureAt = nil, time.Now().Add(yieldPause+rand.N(yieldRandomPause))
		case n.what == created:
			f.ensureAt = time.Time{}
			f.backlog.note(n)
		case f.backlog.note(n):
			f.yielding.lost()
		}
	}
}

// forget has the queue listed before anything else.
func (f *elementFetcher) forget() {
	f.backlog.clear()
	f.reading, f.listed, f.ensureAt = nil, false, time.Time{}
}

// first returns the first element, read; nil if there is none, or it is left to others for a while. Those that are
// offered come behind those of the last list, so that one is enough for all that are in it.
func (f *elementFetcher) first(c *call) (*element, error) {
	c.yieldUntil = time.Time{}
	for {
		f.takeNews(c)
		if f.backlog.free+len(f.reading) == 0 {
			f.yielding.until = time.Time{}
			if c.waits && f.watching && f.listed {
				return nil, f.awaitPath(c) // an event announces the next
			}
			if isEmpty, err := f.list(c); err != nil || isEmpty {
				return nil, err
			}
			continue
		}
		if c.waits && f.watching && len(f.reading) == 0 && f.yielding.isYielding(time.Now()) {
			c.yieldUntil = f.yielding.until
			return nil, nil //nolint:nilnil // the end of the pause is awaited
		}
		if f.watching && f.backlog.free >= maxWatched {
			f.watchLess(c)
		}
		watched := f.watchPath(c)
		f.read(c)
		e := f.reading[0]
		if e.readAt.Before(c.began) { // it may have gone since, and another come by its name in a queue made anew
			e = f.readElement(c, e.claim.name)
			f.reading[0] = e
		}
		if err := f.awaitWatch(c, watched); err != nil {
			return nil, err
		}
		err := e.awaitRead(c.ctx)
		isAnew := !f.listed || e.claim.epoch != f.watch.current() || !f.watching && e.claim.stat.Czxid > f.newest
		switch {
		case errors.Is(err, zk.ErrNoNode):
			f.yielding.lost()
			f.reading = f.reading[1:]
			if f.misses++; isUsedUp(f.misses, f.backlog.free) {
				f.forget()
			}
		case waitqueue.IsOutage(err), err != nil && c.ctx.Err() != nil:
			return nil, err
		case err != nil:
			return nil, &ItemError{Path: e.node(), Data: e.claim.data, Err: err}
		case isAnew: // there may be others before it
			f.forget()
		default:
			return e, nil
		}
	}
}

// awaitPath creates the path after it was deleted, unless another does so before.
func (f *elementFetcher) awaitPath(c *call) error {
	if f.ensureAt.IsZero() || time.Now().Before(f.ensureAt) {
		c.yieldUntil = f.ensureAt
		return nil
	}
	f.ensureAt = time.Time{}
	return f.ensure(c.ctx)
}

// read reads as many as are wanted, and further the more of them are gone.
func (f *elementFetcher) read(c *call) {
	for most := max(int(f.demand.Load()), 1) + f.misses; len(f.reading) < most && f.backlog.first() != nil; {
		f.reading = append(f.reading, f.readElement(c, f.backlog.pop().name))
	}
}

// readElement begins to read an element.
func (f *elementFetcher) readElement(c *call, n nodeName) *element {
	e := &element{readAt: time.Now(), gap: f.watch.gap(), claim: &deleteClaim{
		place: f.place, name: n, watch: f.watch, epoch: f.watch.current(), check: func([]byte) error { return nil },
	}}
	e.claim.begin(once(c.ctx))
	return e
}

// list lists the queue, and reports whether it is known that there is nothing to wait for. For a call that waits the
// queue is watched if there was nothing in it before, and created, as a container like its parents: the server may have
// removed it after the last element.
func (f *elementFetcher) list(c *call) (isEmpty bool, err error) {
	f.forget()
	f.misses = 0
	flight := builders.InOneFlight(c.ctx)
	if c.waits && f.lastEmpty {
		if err := f.addWatches(flight); err != nil {
			return false, err
		}
	}
	var stat zk.Stat
	list := f.place.client.GetChildren().StoringStatIn(&stat)
	if c.waits && f.lastEmpty && f.unsupported {
		list = list.UsingWatcher(f.watch.watcher)
	}
	children, err := list.ForPath(flight, f.place.path)
	if errors.Is(err, zk.ErrNoNode) {
		if f.lastEmpty = true; c.waits {
			return false, f.ensure(c.ctx)
		}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	isWatched := f.watching || f.unsupported && f.lastEmpty
	f.backlog.fill(children, nil)
	f.mu.Lock()
	for e := range f.claimed { // after a lost connection it may still be there
		if f.backlog.take(f.backlog.items[e.claim.name.whole]) {
			f.claimed[e] = true
		}
	}
	f.mu.Unlock()
	f.newest, f.listed, f.lastEmpty = stat.Pzxid, true, f.backlog.free == 0
	return f.lastEmpty && (!c.waits || isWatched), nil
}

// addWatches watches all elements.
func (f *elementFetcher) addWatches(flight context.Context) error {
	f.willWatch()
	if f.watching || f.unsupported {
		return nil
	}
	err := f.watch.all(flight)
	if isRefusal(err) {
		f.unsupported = true
		return nil
	}
	f.watching = err == nil
	return err
}

// watchPath watches the path alone, unless it is watched: before an element is deleted that was read, it is known
// whether its name may be that of another by now. awaitWatch has to follow.
func (f *elementFetcher) watchPath(c *call) *builders.Future[*zk.Stat] {
	if f.watching || f.pathOnly {
		return nil
	}
	f.willWatch()
	exists := f.watch.pathOnly(once(c.ctx))
	return &exists
}

// awaitWatch waits for the answer to watchPath.
func (f *elementFetcher) awaitWatch(c *call, exists *builders.Future[*zk.Stat]) error {
	if exists == nil {
		return nil
	}
	stat, err := exists.Wait(c.ctx)
	if err != nil {
		return err
	}
	f.pathOnly = true
	if stat == nil || stat.Czxid > f.newest {
		f.forget()
	}
	return nil
}

// watchLess ends the watches of the elements: with so many, a list costs less than events.
func (f *elementFetcher) watchLess(c *call) {
	f.watch.remove(context.WithoutCancel(c.ctx))
	f.watching = false
}

// willWatch prepares for watches.
func (f *elementFetcher) willWatch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isWatched {
		f.watch.reset()
		f.isWatched = true
	}
}

// ensure creates what is missing of the path.
func (f *elementFetcher) ensure(ctx context.Context) error {
	exists := f.place.client.CheckExists().CreatingParentContainersIfNeeded()
	_, err := exists.ForPath(builders.InOneFlight(ctx), zkpath.Join(f.place.path, elementName))
	return err
}
