package queue

import (
	"context"
	"errors"
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

// elementFetcher claims the elements of a simple queue, one for each call that wants one. The calls share the known
// state of the queue. While a call waits, the elements are watched, and changes arrive without a request.
type elementFetcher struct {
	view // guarded by turn
	obs  *telemetry.Queue

	calls  atomic.Int64  // under way
	demand atomic.Int64  // number of calls that want an element
	waiter chan struct{} // held by the one call that waits for an element to appear
	turn   chan struct{} // held while the first element is looked up; it guards the fields that follow those below mu
	unused *time.Timer   // ends the watches

	mu       sync.Mutex
	claimed  map[*element]bool // elements with an unknown outcome; true if a list had the element
	isSlower bool              // a claim was lost to a faster consumer
	isStale  bool              // the known state is not reliable

	pathOnly bool       // the path is watched, since before the reading
	newest   int64      // zxid of the list: the path is not younger
	reading  []*element // in order
}

func newElementFetcher(client Client, path string) *elementFetcher {
	w := newQueueWatch(&place{client: client, path: path})
	w.isOfAll = true
	f := &elementFetcher{
		view: newView(w, elements), waiter: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		claimed: make(map[*element]bool),
	}
	f.unused = time.AfterFunc(lingering, f.unwatch)
	f.unused.Stop()
	return f
}

// call is one call of a method.
type call struct {
	ctx     context.Context
	waitCtx context.Context // bounds the wait for an element, and for a connection before there is one
	waits   bool            // for an element
	began   time.Time       // data read before it is too old

	yieldUntil time.Time // the end of a pause, zero if there is none
}

// enter starts a call. The caller must call leave afterwards.
func (f *elementFetcher) enter() { f.calls.Add(1) }

// leave ends a call. A while after the last one the watches are removed.
func (f *elementFetcher) leave() {
	if f.calls.Add(-1) == 0 {
		f.unused.Reset(lingering)
	}
}

// unwatch removes the watches if no call is under way.
func (f *elementFetcher) unwatch() {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	default: // the call that looks at the queue leaves later
		return
	}
	if f.calls.Load() == 0 {
		f.watch.remove(context.Background()) //nolint:forbidigo // it continues in the background
		f.watch.reset()
		f.watching, f.pathOnly = false, false
	}
}

// take claims the first element and waits until the claim has succeeded. It returns nil if there is no element and the
// call does not wait for one.
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

// ended records the outcome of a claim, for the call that holds the turn.
func (f *elementFetcher) ended(e *element, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wasListed := f.claimed[e]
	delete(f.claimed, e)
	switch {
	case err == nil && !wasListed:
		return
	case errors.Is(err, errTaken) && !wasListed:
		f.isSlower = true
	default:
		f.isStale = true
	}
	nudge(f.watch.wake)
}

// next claims the first element. If the call waits, next returns as soon as there is one. Of the calls of one value,
// one waits for the element, and the others wait for that call.
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
			first.readAt = time.Time{} // the caller owns the bytes: the next call reads them again
		}
		return err
	})
	return first, err
}

// claim submits the deletion of the first element and returns it, nil if there is none. Later lists do not have it.
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

// inTurn calls fn while no other call uses the queue, and calls it again after a lost connection.
func (f *elementFetcher) inTurn(c *call, fn func() error) error {
	return waitqueue.RetryOutage(c.waitCtx, f.place.client, func() error { return f.onceInTurn(c, fn) })
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

// takeNews applies the recorded events. A call that does not wait wakes the one that does.
func (f *elementFetcher) takeNews(c *call) {
	all, missed := f.watch.take()
	if !c.waits && (missed || len(all) > 0) {
		nudge(f.watch.wake)
	}
	f.mu.Lock()
	isSlower, isStale := f.isSlower, f.isStale
	f.isSlower, f.isStale = false, false
	f.mu.Unlock()
	if isSlower {
		f.yielding.lost()
	}
	if missed || !f.watching && slices.Contains(all, news{what: emptied}) { // the watches are added again
		f.watching, f.pathOnly, isStale = false, false, true
	}
	if isStale {
		f.forget()
	}
	if !f.watching || f.stale {
		return
	}
	for _, n := range all {
		if f.note(n); n.what == emptied {
			f.reading = nil
		}
	}
}

// forget marks the known state as stale, so that the queue is listed first.
func (f *elementFetcher) forget() {
	f.backlog.clear()
	f.reading, f.stale = nil, true
}

// first returns the first element, read. It returns nil if there is none, or if it is left to other consumers for a
// while. New elements come behind those of the last list, so that one list is enough for all its elements.
func (f *elementFetcher) first(c *call) (*element, error) {
	c.yieldUntil = time.Time{}
	for {
		f.takeNews(c)
		if f.backlog.free+len(f.reading) == 0 {
			f.yielding.until = time.Time{}
			if c.waits && f.watching && !f.stale {
				return nil, nil //nolint:nilnil // an event announces the next
			}
			if isEmpty, err := f.list(c); err != nil || isEmpty {
				return nil, err
			}
			continue
		}
		mayYield := c.waits && c.waitCtx.Err() == nil
		if mayYield && f.watching && len(f.reading) == 0 && f.yielding.isYielding(time.Now()) {
			c.yieldUntil = f.yielding.until
			return nil, nil //nolint:nilnil // the caller waits for the end of the pause
		}
		watched := f.watchPath(c)
		f.read(c)
		e := f.reading[0]
		if e.readAt.Before(c.began) { // it may be gone, and another may have its name in a recreated queue
			e = f.readElement(c, e.claim.name)
			f.reading[0] = e
		}
		if err := f.awaitWatch(c, watched); err != nil {
			return nil, err
		}
		err := e.awaitRead(c.ctx)
		isAnew := f.stale || e.claim.epoch != f.watch.current()
		switch {
		case isAnew: // there may be others before it
			f.forget()
		case errors.Is(err, zk.ErrNoNode):
			f.yielding.lost()
			f.reading = f.reading[1:]
			if f.misses++; f.isUsedUp() {
				f.forget()
			}
		case waitqueue.IsOutage(err), err != nil && c.ctx.Err() != nil:
			return nil, err
		case err != nil:
			return nil, &ItemError{Path: e.node(), Data: e.claim.data, Err: err}
		default:
			return e, nil
		}
	}
}

// read reads as many elements as are wanted, and more as more of them turn out to be gone.
func (f *elementFetcher) read(c *call) {
	for most := max(int(f.demand.Load()), 1) + f.misses; len(f.reading) < most && f.backlog.first() != nil; {
		f.reading = append(f.reading, f.readElement(c, f.backlog.pop().name))
	}
}

// readElement starts to read an element.
func (f *elementFetcher) readElement(c *call, n nodeName) *element {
	e := &element{readAt: time.Now(), gap: f.watch.gap(), claim: &deleteClaim{
		place: f.place, name: n, watch: f.watch, epoch: f.watch.current(), decode: anyBytes,
	}}
	e.claim.begin(once(c.ctx))
	return e
}

// list lists the queue, and reports whether there is nothing to wait for. If the call waits, list also watches a queue
// whose last list was empty. A watched queue may have no path: the server removes an empty container. Where only a path
// can be watched, list creates it, as a container like its parents.
func (f *elementFetcher) list(c *call) (isEmpty bool, err error) {
	f.forget()
	f.misses = 0
	flight := builders.Pipelined(c.ctx)
	if c.waits && f.lastEmpty && !f.watching {
		if err := f.addWatch(flight); err != nil {
			return false, err
		}
	}
	watched := c.waits && f.lastEmpty && f.unsupported // each change would end the use of the list
	var stat zk.Stat
	children, err := f.children(watched).StoringStatIn(&stat).ForPath(flight, f.place.path)
	switch {
	case errors.Is(err, zk.ErrNoNode) && c.waits && f.unsupported:
		return false, f.ensure(c.ctx)
	case err != nil && !errors.Is(err, zk.ErrNoNode):
		return false, err
	}
	f.backlog.fill(children, nil)
	f.mu.Lock()
	for e := range f.claimed { // it may still exist after a lost connection
		if f.backlog.take(f.backlog.items[e.claim.name.whole]) {
			f.claimed[e] = true
		}
	}
	f.mu.Unlock()
	f.newest, f.stale, f.lastEmpty = stat.Pzxid, false, f.backlog.free == 0
	return f.lastEmpty && (!c.waits || f.watching || watched), nil
}

// watchPath watches the path alone, unless it is watched already. So a deletion of the path is noticed before an
// element is deleted whose name may belong to another by now. The caller must call awaitWatch afterwards.
func (f *elementFetcher) watchPath(c *call) *builders.Future[*zk.Stat] {
	if f.watching || f.pathOnly {
		return nil
	}
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

// ensure creates the missing nodes of the path.
func (f *elementFetcher) ensure(ctx context.Context) error {
	exists := f.place.client.CheckExists().CreatingParentContainersIfNeeded()
	_, err := exists.ForPath(builders.Pipelined(ctx), zkpath.Join(f.place.path, elementName))
	return err
}
