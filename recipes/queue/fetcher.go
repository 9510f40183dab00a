package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// fetcher claims the items of a queue, one after the other, while next runs.
//
// A long queue is listed once for all its items, and again when all of them are claimed. The items and locks are
// watched instead when the queue is empty, and always where new items may precede others: then changes arrive without a
// request. The next items are read ahead and claimed ahead, in one flight.
type fetcher struct {
	view    // guarded by turn
	kind    kind
	handler handler
	root    context.Context // of the requests, which may continue after life
	life    context.Context // bounds the wait for answers
	id      string          // of the claims, with a number

	turn        chan struct{} // held during next; it guards the fields below
	slow        *time.Timer   // for an item that takes long
	shareChecks int           // checks for idle consumers while that item takes long

	isOpen     bool
	flight     context.Context
	listing    *listing // on its way, nil if there is none
	epoch      int64    // of the path in the last list
	gap        int64    // of the watch, up to which deletions of the path are known
	quarantine quarantine
	prefetch   prefetch
	prefetched []*deleteClaim // being read, in order
	claims     []claim        // in the order in which they were submitted
	ready      []*message
	claimed    int64     // number of claims so far, for the ids
	others     int       // nodes in the last list that are not items
	checkAt    time.Time // when to count the nodes if there is no event before
	alone      int       // number of items to delete one by one
	busy       int       // claims since the last wait for one
	failures   int       // in a row
	reported   causes    // since the queue could be listed
}

// handler has the methods of a fetcher's queue that depend on the type of the items.
type handler interface {
	// decode returns what a node holds, or the error of an item that cannot be read.
	decode(data []byte) (contents any, err error)
	// corrupt handles an item that cannot be read.
	corrupt(m *message, cause error, isNew bool) error
	// release deletes the lock of an item.
	release(m *message)
	// claimLost counts an item that another consumer has taken first.
	claimLost()
	// putAgainInBackground puts a deleted item into the queue again.
	putAgainInBackground(m *message)
	report(ctx context.Context, err error)
	reportItem(ctx context.Context, n nodeName, data []byte, err error)
}

// Limits for the change between lists and watches, and for yielding to others.
const (
	maxWatched        = 512 // with more items, a list costs less than events
	maxBusy           = 256 // items in a row without waiting
	aloneAfterFailure = 256
	checkPause        = time.Minute
)

func newFetcher(k kind, w *queueWatch, prefetchLimit int, h handler) *fetcher {
	f := &fetcher{
		view: newView(w, k), kind: k, handler: h, id: zkpath.NewProtectionID(), turn: make(chan struct{}, 1),
		prefetch: prefetch{limit: prefetchLimit},
	}
	f.slow = time.AfterFunc(slowItem, f.shareOut)
	f.slow.Stop()
	return f
}

func (f *fetcher) start(root, life context.Context) { f.root, f.life = root, life }

// next waits for an item that is ours and returns it. It fails with the cause of the end of ctx, and when the client is
// closed.
func (f *fetcher) next(ctx context.Context) (*message, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f.open()
	f.prefetch.consumed(time.Now())
	for {
		f.takeNews()
		if m := f.pick(); m != nil {
			f.prefetch.taken(time.Now())
			if len(f.ready)+len(f.claims) > 0 {
				f.shareChecks = 0
				f.slow.Reset(slowItem)
			}
			return m, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err := f.step(ctx)
		switch {
		case errors.Is(err, framework.ErrClosed):
			return nil, err
		case err != nil && ctx.Err() == nil:
			f.recoverFrom(ctx, err)
		}
	}
}

func (f *fetcher) open() {
	if f.isOpen {
		return
	}
	f.isOpen, f.stale = true, true
	f.flight = builders.Pipelined(f.root)
}

// takeNews applies the recorded events.
func (f *fetcher) takeNews() {
	all, missed := f.watch.take()
	f.stale = f.stale || missed
	switch {
	case f.stale, !f.watching:
	case f.listing != nil:
		f.listing.news = append(f.listing.news, all...)
	default:
		f.noteAll(all)
	}
	for _, name := range f.quarantine.ended(time.Now()) {
		f.backlog.add(f.backlog.items[name])
	}
}

func (f *fetcher) noteAll(all []news) {
	for _, n := range all {
		f.note(n)
		if n.what == deleted {
			f.quarantine.forget(n.name)
		} else {
			f.takeQuarantined(n.name)
		}
	}
}

// takeQuarantined removes an item in quarantine from the items that may be claimed.
func (f *fetcher) takeQuarantined(name string) {
	if len(f.quarantine.items) > 0 && f.quarantine.has(name, time.Now()) {
		f.backlog.take(f.backlog.items[name])
	}
}

// pick returns the next item, nil if it must still be claimed.
func (f *fetcher) pick() *message {
	if f.place.hasLocks() {
		f.ready = slices.DeleteFunc(f.ready, f.isLost)
	}
	if len(f.ready) == 0 {
		return nil
	}
	if f.kind.isSorted() {
		slices.SortStableFunc(f.ready, func(a, b *message) int { return f.kind.order(a.name, b.name) })
		if f.isOvertaken(f.ready[0].name) {
			return nil
		}
	}
	m := f.ready[0]
	f.ready = slices.Delete(f.ready, 0, 1)
	return m
}

// isLost reports whether a locked item may no longer be ours, or was deleted with the path.
func (f *fetcher) isLost(m *message) bool {
	if m.lock.session.Context().Err() == nil && m.epoch == f.watch.current() && !m.lock.deleted.Load() {
		return false
	}
	f.handler.release(m)
	return true
}

// isOvertaken reports whether an item that is not claimed yet precedes n.
func (f *fetcher) isOvertaken(n nodeName) bool {
	if f.isClaimedBefore(n) || len(f.prefetched) > 0 && f.kind.order(f.prefetched[0].name, n) < 0 {
		return true
	}
	x := f.due()
	return x != nil && f.kind.order(x.name, n) < 0
}

// step submits claims and takes the answer to the first one. Without any claim it waits for an item.
func (f *fetcher) step(ctx context.Context) error {
	if err := f.refresh(ctx); err != nil {
		return err
	}
	f.failures = 0
	clear(f.reported)
	if f.stale {
		return nil
	}
	f.claim(ctx)
	switch {
	case len(f.claims) > 0:
		return f.takeAnswer(ctx)
	case len(f.prefetched) == 0 && (f.watching || f.unsupported && (f.lastEmpty || f.backlog.free > 0)): // none is due
		f.await(ctx)
	}
	return nil
}

// takeAnswer waits for the answer to the first claim and applies it.
func (f *fetcher) takeAnswer(ctx context.Context) error {
	c := f.claims[0]
	waits := !isClosed(c.done())
	if waits && !awaitDone(ctx, c.done()) {
		return nil
	}
	f.verify()
	m, err := c.end(f.life)
	if isUnanswered(err) || errors.Is(err, framework.ErrClosed) {
		return err
	}
	f.claims[0] = nil
	f.claims = f.claims[1:]
	isOurs, err := f.outcome(c, m, err)
	f.adjustPrefetch(isOurs, waits)
	if f.misses++; isOurs {
		f.misses = 0
	}
	if !f.watching && f.isUsedUp() {
		f.backlog.clear()
		f.misses = 0
	}
	return err
}

// verify checks whether the path was deleted, in case events were dropped.
func (f *fetcher) verify() {
	if gap := f.watch.gap(); f.gap != gap {
		f.watch.verify(f.life)
		f.gap = gap
	}
}

// outcome applies the result of a claim, and reports whether an item is ours now.
func (f *fetcher) outcome(c claim, m *message, err error) (isOurs bool, _ error) {
	x := f.backlog.items[c.node().whole]
	if err == nil && m.lock != nil {
		err = f.decode(m)
	}
	switch {
	case err == nil:
		f.prefetch.read(len(m.data))
		f.ready = append(f.ready, m)
		return true, nil
	case isCorrupt(err):
		f.keepCorrupt(m, err)
		return true, nil
	case m != nil && m.lock != nil:
		f.handler.release(m)
	}
	switch {
	case errors.Is(err, errTaken):
		f.handler.claimLost()
		f.yielding.lost()
		if l, ok := c.(*lockClaim); ok && x != nil && x.unlocks != l.unlocks { // the lock was deleted meanwhile
			f.backlog.add(x)
		}
	case errors.Is(err, errChanged):
		f.backlog.add(x)
	case errors.Is(err, ErrUncertain):
		f.handler.reportItem(f.root, c.node(), m.data, err)
		return true, nil
	case errors.Is(err, zk.ErrNoNode): // the path of the locks
		f.stale = true
		return true, f.place.ensure(f.life)
	case errors.Is(err, framework.ErrTooManyPending):
		f.backlog.add(x)
		return true, err
	default:
		f.quarantineItem(c.node(), nil, err)
	}
	return false, nil
}

// decode decodes an item with a lock. It handles the item also if the serializer ends the goroutine.
func (f *fetcher) decode(m *message) (err error) {
	returned := false
	defer func() {
		if !returned {
			f.keepCorrupt(m, errDecodingExited)
		}
	}()
	m.contents, err = f.handler.decode(m.data)
	returned = true
	return err
}

// keepCorrupt handles an item that cannot be read as the user has configured.
func (f *fetcher) keepCorrupt(m *message, cause error) {
	isNew := f.quarantine.add(m.name.whole, time.Now(), cause)
	if err := f.handler.corrupt(m, cause, isNew); err != nil {
		f.quarantineItem(m.name, m.data, err)
	}
}

// quarantineItem skips an item for a while, and reports the cause once.
func (f *fetcher) quarantineItem(n nodeName, data []byte, cause error) {
	if f.quarantine.add(n.whole, time.Now(), cause) {
		f.handler.reportItem(f.root, n, data, cause)
	}
}

// adjustPrefetch raises or lowers the prefetch. It depends on whether the item was ours, and whether the answer had to
// be waited for.
func (f *fetcher) adjustPrefetch(ours, waited bool) {
	switch {
	case !ours: // the items that were read ahead may be gone, too
		f.prefetch.missed()
		f.forgetPrefetched()
	case waited:
		f.prefetch.waited()
	}
}

// forgetPrefetched discards the items that were read ahead, so that they are read again.
func (f *fetcher) forgetPrefetched() {
	for _, c := range f.prefetched {
		f.backlog.add(f.backlog.items[c.name.whole])
	}
	f.prefetched = nil
}

// recoverFrom continues after an error: it resolves the claims, and starts with a new list.
func (f *fetcher) recoverFrom(ctx context.Context, err error) {
	f.stale = true
	if !waitqueue.IsOutage(err) {
		if err = errtext.Wrap(err, "queue", "%s", f.place.path); f.reported.isNew(err) {
			f.handler.report(f.root, err)
		}
		_ = waitqueue.Pause(ctx, doubled(waitqueue.FailurePause, maxQuarantine, f.failures))
		f.failures++
	} else if waitqueue.AwaitConnection(ctx, f.place.client) != nil {
		return // next returns the cause
	}
	f.resolve()
	f.flight = builders.Pipelined(f.root)
}

// resolve ends all claims and finds out their outcomes.
func (f *fetcher) resolve() {
	if len(f.claims) > 0 {
		f.verify()
	}
	for _, c := range f.claims {
		m, err := c.resolve(f.life)
		switch {
		case m == nil:
		case err == nil, isCorrupt(err):
			_, _ = f.outcome(c, m, err)
		case errors.Is(err, ErrUncertain):
			f.handler.reportItem(f.root, m.name, m.data, err)
		case m.lock != nil:
			f.handler.release(m)
		}
	}
	f.claims, f.stale, f.lastEmpty = nil, true, false
}

// drain ends the fetching, and returns an item that is ours and that next did not return, nil if there is none.
func (f *fetcher) drain() *message {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if f.isOpen {
		f.slow.Stop()
		f.resolve()
		f.prefetched, f.listing, f.isOpen = nil, nil, false
		f.backlog.clear()
		f.unwatch()
	}
	if len(f.ready) == 0 {
		return nil
	}
	m := f.ready[0]
	f.ready = f.ready[1:]
	return m
}
