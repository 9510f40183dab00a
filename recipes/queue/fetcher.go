package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
	"github.com/gocurator/curator/zkpath"
)

// fetcher claims the items of a queue, one after the other, for as long as it is asked for the next.
//
// A queue in which there is much is listed once for all items in it, and again when all of them are claimed. When nothing
// is left, and always where newcomers may go before others, the items and locks are watched instead: what happens comes
// without a request. What is going to be claimed is read ahead and claimed ahead, in one flight.
type fetcher struct {
	place *place
	kind  kind
	watch *queueWatch
	edge  edge
	root  context.Context // of the requests, which outlive life
	life  context.Context // bounds the waiting for answers
	id    string          // of the claims, with a number

	turn chan struct{} // of the one who asks for the next item; what follows is theirs
	slow *time.Timer   // for an item that takes long

	isOpen   bool
	watching bool // all items and locks are watched
	unable   bool // the server has no such watches
	stale    bool // what was listed and read is not to be relied on

	flight     context.Context
	listing    *listing // on its way, nil if there is none
	lastEmpty  bool     // there was nothing to take in the last list
	path       int64    // czxid of the path when it was listed, 0 before
	epoch      int64    // of that
	backlog    backlog
	quarantine quarantine
	prefetch   prefetch
	looked     []*deleteClaim // being read, in order
	claims     []claim        // in the order in which they were submitted
	ready      []*message
	claimed    int64 // how many were, for the ids
	misses     int   // items in a row that were another's
	losses     int   // how often another was faster, since a pause ended in vain
	holdOff    time.Time
	others     int       // nodes in the last list that are no items
	checkAt    time.Time // when the nodes are counted, if nothing happens before; zero without watches
	alone      int       // so many are not deleted together with others
	busy       int       // how many were claimed since it had to wait for one
	failures   int       // in a row
	reported   map[string]struct{}
}

// edge is what a fetcher needs of those who use it.
type edge struct {
	check   func(data []byte) error                               // whether an item can be read
	corrupt func(m *message, cause error, isNew bool) (err error) // an item that cannot be
	release func(m *message)                                      // its lock is to be deleted
	putBack func(m *message)                                      // it is deleted, and to be put again
	report  func(err error)
}

// How a fetcher changes between lists and watches, and how it gives way.
const (
	maxWatched        = 512 // beyond that a list costs less than events
	maxBusy           = 256 // so many items in a row without waiting
	aloneAfterFailure = 256
	checkPause        = time.Minute
	givingWay         = 10 * time.Millisecond
	givingWayAtRandom = 40 * time.Millisecond
)

func newFetcher(p *place, k kind, w *queueWatch, prefetched int, e edge) *fetcher {
	f := &fetcher{
		place: p, kind: k, watch: w, edge: e, id: zkpath.NewProtectionID(), turn: make(chan struct{}, 1),
		backlog: backlog{kind: k}, prefetch: prefetch{limit: prefetched}, reported: make(map[string]struct{}),
	}
	f.backlog.clear()
	return f
}

func (f *fetcher) start(root, life context.Context) { f.root, f.life = root, life }

// next waits for an item and returns it, ours. It fails with the cause of the end of ctx, and when the client is closed.
func (f *fetcher) next(ctx context.Context) (*message, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f.open()
	f.prefetch.asked(time.Now())
	for {
		f.hear()
		if m := f.pick(); m != nil {
			f.prefetch.taken(time.Now())
			if len(f.ready)+len(f.claims) > 0 {
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
	f.flight = builders.InOneFlight(f.root)
	if f.slow == nil {
		f.slow = time.AfterFunc(slowItem, f.shareOut)
		f.slow.Stop()
	}
}

// hear takes the news.
func (f *fetcher) hear() {
	all, missed := f.watch.take()
	f.stale = f.stale || missed
	switch {
	case f.stale, !f.watching:
	case f.listing != nil:
		f.listing.news = append(f.listing.news, all...)
	default:
		f.note(all)
	}
	for _, name := range f.quarantine.ended(time.Now()) {
		f.backlog.add(f.backlog.items[name])
	}
}

func (f *fetcher) note(all []news) {
	for _, n := range all {
		if f.backlog.note(n) {
			f.lost()
		}
		switch {
		case n.what == deleted:
			f.quarantine.forget(n.name)
		default:
			f.takeQuarantined(n.name)
		}
	}
}

// takeQuarantined takes an item in quarantine from those that may be claimed.
func (f *fetcher) takeQuarantined(name string) {
	if len(f.quarantine.items) > 0 && f.quarantine.has(name, time.Now()) {
		f.backlog.take(f.backlog.items[name])
	}
}

// lost notes that another was faster.
func (f *fetcher) lost() { f.losses = min(f.losses+1, 24) }

// pick returns the item that comes next, nil if it is still to be claimed.
func (f *fetcher) pick() *message {
	if f.place.hasLocks() {
		f.ready = slices.DeleteFunc(f.ready, f.isLost)
	}
	if len(f.ready) == 0 {
		return nil
	}
	at := 0
	if f.kind.isSorted() {
		for i, m := range f.ready {
			if f.kind.order(m.name, f.ready[at].name) < 0 {
				at = i
			}
		}
		if f.isOvertaken(f.ready[at].name) {
			return nil
		}
	}
	m := f.ready[at]
	f.ready = slices.Delete(f.ready, at, at+1)
	return m
}

// isLost reports whether a locked item is not ours any longer, or was deleted with the path.
func (f *fetcher) isLost(m *message) bool {
	if m.lock.session.Context().Err() == nil && m.epoch == f.watch.current() {
		return false
	}
	f.edge.release(m)
	return true
}

// isOvertaken reports whether an item that is not claimed yet goes before n.
func (f *fetcher) isOvertaken(n nodeName) bool {
	for _, c := range f.claims {
		if f.kind.order(c.node(), n) < 0 {
			return true
		}
	}
	if len(f.looked) > 0 && f.kind.order(f.looked[0].name, n) < 0 {
		return true
	}
	x := f.backlog.first()
	return x != nil && f.kind.order(x.name, n) < 0 && !x.due.After(time.Now())
}

// step claims what is to be claimed and takes the answer to the first claim. Without any it waits for one.
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
	case len(f.looked) == 0 && (f.watching || f.unable && f.lastEmpty):
		f.await(ctx)
	}
	return nil
}

// claim claims the first that are left, and reads the next.
func (f *fetcher) claim(ctx context.Context) {
	if x := f.backlog.first(); x != nil && !x.due.After(time.Now()) && f.isGivingWay(time.Now()) {
		return
	}
	if f.place.hasLocks() {
		f.lock()
		return
	}
	if f.alone > 0 || len(f.claims) < (f.limit()+1)/2 { // else more of them would go together a little later
		f.delete(ctx)
	}
	f.look()
}

// limit returns how many items may be claimed and not begun.
func (f *fetcher) limit() int {
	most := f.prefetch.most() + 1
	if f.kind.claimed > 0 {
		most = min(most, f.kind.claimed)
	}
	return most
}

// mayClaim reports whether n is to be claimed now.
func (f *fetcher) mayClaim(n nodeName) bool {
	if len(f.claims)+len(f.ready) < f.limit() {
		return true
	}
	if !f.kind.isSorted() {
		return false
	}
	for _, m := range f.ready {
		if f.kind.order(m.name, n) < 0 {
			return false
		}
	}
	for _, c := range f.claims {
		if f.kind.order(c.node(), n) < 0 {
			return false
		}
	}
	return true
}

// due returns the first item if it is due, nil if there is none.
func (f *fetcher) due() *waitingItem {
	x := f.backlog.first()
	if x == nil || x.due.After(time.Now()) {
		return nil
	}
	return x
}

func (f *fetcher) lock() {
	for x := f.due(); x != nil && f.mayClaim(x.name); x = f.due() {
		f.backlog.pop()
		c := &lockClaim{
			place: f.place, name: x.name, id: f.newID(),
			epoch: f.watch.current(), connection: f.watch.connection(), unlocks: x.unlocks,
		}
		c.begin(f.flight)
		f.claims = append(f.claims, c)
		f.busy++
	}
}

// delete claims those that were read, in one transaction as long as nobody else takes some of them.
func (f *fetcher) delete(ctx context.Context) {
	var together []*deleteClaim
	for f.look(); len(f.looked) > 0 && f.mayClaim(f.looked[0].name); f.look() {
		c := f.looked[0]
		if len(together)+len(f.claims) == 0 && !awaitDone(ctx, c.read.Done()) {
			return
		}
		f.looked = slices.Delete(f.looked, 0, 1)
		f.claims = append(f.claims, c)
		f.busy++
		if c.isReadable(f.life) {
			together = append(together, c)
		}
	}
	if len(together) > 1 && f.alone == 0 {
		deleteTogether(f.flight, f.place, together, func() { f.alone = aloneAfterFailure })
		return
	}
	for _, c := range together {
		f.alone = max(f.alone-1, 0)
		c.submit(f.flight)
	}
}

// look reads ahead, twice as far as is claimed ahead.
func (f *fetcher) look() {
	for x := f.due(); x != nil; x = f.due() {
		goesBefore := f.kind.isSorted() && len(f.looked) > 0 && f.kind.order(x.name, f.looked[0].name) < 0
		isFar := len(f.looked) > 2*f.prefetch.most() ||
			len(f.looked)+len(f.claims)+len(f.ready) > f.prefetch.mostRead()
		if isFar && !goesBefore {
			return
		}
		f.backlog.pop()
		c := &deleteClaim{place: f.place, name: x.name, watch: f.watch, check: f.edge.check, epoch: f.watch.current()}
		c.begin(f.flight)
		f.looked = append(f.looked, c)
		if goesBefore {
			slices.SortStableFunc(f.looked, func(a, b *deleteClaim) int { return f.kind.order(a.name, b.name) })
		}
	}
}

// takeAnswer takes the answer to the first claim.
func (f *fetcher) takeAnswer(ctx context.Context) error {
	c := f.claims[0]
	waits := !isClosed(c.done())
	if waits && !awaitDone(ctx, c.done()) {
		return nil
	}
	m, err := c.end(f.life)
	if lineup.IsOutage(err) || isEndOf(err) || errors.Is(err, framework.ErrClosed) {
		return err
	}
	f.claims[0] = nil
	f.claims = f.claims[1:]
	isOurs, err := f.outcome(c, m, err)
	f.adapt(isOurs, waits)
	if f.misses++; isOurs {
		f.misses = 0
	}
	if !f.watching && isUsedUp(f.misses, f.backlog.free) {
		f.backlog.clear()
		f.misses = 0
	}
	return err
}

// isUsedUp reports whether a new list is cheaper than following one of which so many names are left, after so many misses in
// a row: others were faster.
func isUsedUp(misses, left int) bool { return misses > 16+left/32 }

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func isDone[V any](future builders.Future[V]) bool { return isClosed(future.Done()) }

// awaitDone waits until done is closed, and reports false if ctx ended before.
func awaitDone(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// outcome takes the end of a claim, and reports whether it has made an item ours.
func (f *fetcher) outcome(c claim, m *message, err error) (isOurs bool, _ error) {
	x := f.backlog.items[c.node().whole]
	if err == nil && m.lock != nil {
		err = f.edge.check(m.data)
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
		f.edge.release(m)
	}
	switch {
	case errors.Is(err, errTaken):
		f.lost()
		if l, ok := c.(*lockClaim); ok && x != nil && x.unlocks != l.unlocks { // the lock has gone meanwhile
			f.backlog.add(x)
		}
	case errors.Is(err, errChanged):
		f.backlog.add(x)
	case errors.Is(err, ErrUncertain):
		f.reportItem(c.node(), m.data, err)
		return true, nil
	case errors.Is(err, zk.ErrNoNode): // the path of the locks
		f.stale = true
		return true, f.place.ensure(f.life)
	case errors.Is(err, framework.ErrTooManyPending):
		f.backlog.add(x)
		return true, err
	default:
		f.leaveOut(c.node(), nil, err)
	}
	return false, nil
}

// keepCorrupt does with an item that cannot be read what the user wants.
func (f *fetcher) keepCorrupt(m *message, cause error) {
	isNew := f.quarantine.add(m.name.whole, time.Now(), cause)
	if err := f.edge.corrupt(m, cause, isNew); err != nil {
		f.leaveOut(m.name, m.data, err)
	}
}

// leaveOut leaves an item alone for a while, and reports the cause once.
func (f *fetcher) leaveOut(n nodeName, data []byte, cause error) {
	if f.quarantine.add(n.whole, time.Now(), cause) {
		f.reportItem(n, data, cause)
	}
}

func (f *fetcher) reportItem(n nodeName, data []byte, err error) {
	f.edge.report(&ItemError{Path: f.place.node(n), Data: data, Err: err})
}

// adapt goes further ahead or less far, after an item was ours or not and the answer had to be waited for or not.
func (f *fetcher) adapt(ours, waited bool) {
	switch {
	case !ours: // what was read ahead may be gone, too
		f.prefetch.missed()
		f.forgetLooked()
	case waited:
		f.prefetch.waited()
	case len(f.claims) > 0 && isClosed(f.claims[len(f.claims)-1].done()):
		f.prefetch.unused()
	}
}

// forgetLooked has what was read ahead read again.
func (f *fetcher) forgetLooked() {
	for _, c := range f.looked {
		f.backlog.add(f.backlog.items[c.name.whole])
	}
	f.looked = nil
}

// await waits until there may be something to claim.
func (f *fetcher) await(ctx context.Context) {
	f.busy = 0
	now := time.Now()
	until := earlier(f.quarantine.next(now), f.checkAt)
	if x := f.backlog.first(); x != nil {
		until = earlier(until, later(x.due, f.holdOff))
	} else {
		f.holdOff = time.Time{}
	}
	var wake <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(until.Sub(now))
		defer timer.Stop()
		wake = timer.C
	}
	f.watch.await(ctx, wake)
	if now := time.Now(); !f.checkAt.IsZero() && !now.Before(f.checkAt) {
		f.checkAt = now.Add(checkPause)
		f.checkCount(ctx)
	}
}

// checkCount looks for items of which there was no event: a server does not report nodes that may not be read.
func (f *fetcher) checkCount(ctx context.Context) {
	stat, err := f.place.client.CheckExists().Submit(f.flight, f.place.path).Wait(ctx)
	if err == nil && stat != nil {
		f.hear()
		f.stale = f.stale || int(stat.NumChildren) != len(f.backlog.items)+f.others
	}
}

// earlier returns the earlier time of those that are not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isGivingWay reports whether to leave the first item to a consumer that was faster lately. When a pause ends and the item is
// still there, nobody was.
func (f *fetcher) isGivingWay(now time.Time) bool {
	switch {
	case !f.watching || f.losses == 0 || len(f.claims)+len(f.looked) > 0:
		return false
	case f.holdOff.IsZero():
		most := givingWay + rand.N(givingWayAtRandom)
		f.holdOff = now.Add(most * time.Duration(1+f.losses/8))
		return true
	case now.Before(f.holdOff):
		return true
	}
	f.losses, f.holdOff = 0, time.Time{}
	return false
}

// recoverFrom goes on after an error: it finds out what has become of the claims, and begins with a new list.
func (f *fetcher) recoverFrom(ctx context.Context, err error) {
	if !lineup.IsOutage(err) {
		f.reportOnce(errtext.Wrap(err, "queue", "%s", f.place.path))
		_ = pause(ctx, doubled(failurePause, mostQuarantine, f.failures))
		f.failures++
	} else if awaitConnection(ctx, f.place.client) != nil {
		return // next returns the cause
	}
	f.resolve()
	f.flight = builders.InOneFlight(f.root)
}

// reportOnce reports an error that was not reported since the queue could be listed.
func (f *fetcher) reportOnce(err error) {
	if _, known := f.reported[err.Error()]; known {
		return
	}
	f.reported[err.Error()] = struct{}{}
	f.edge.report(err)
}

// resolve ends all claims.
func (f *fetcher) resolve() {
	for _, c := range f.claims {
		m, err := c.resolve(f.life)
		switch {
		case m == nil:
		case err == nil, isCorrupt(err):
			_, _ = f.outcome(c, m, err)
		case errors.Is(err, ErrUncertain):
			f.reportItem(m.name, m.data, err)
		case m.lock != nil:
			f.edge.release(m)
		}
	}
	f.claims, f.stale, f.lastEmpty = nil, true, false
}

// leftover ends the fetching, and returns an item that is ours and was not returned by next, nil if there is none.
func (f *fetcher) leftover() *message {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if f.isOpen {
		f.slow.Stop()
		f.resolve()
		f.looked, f.listing, f.isOpen = nil, nil, false
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

// shareOut gives back what is claimed while an item takes long: others may be idle.
func (f *fetcher) shareOut() {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	default: // the next item is asked for
		return
	}
	if rest := slowItem - time.Since(f.prefetch.takenAt); rest > 0 || !f.isOpen {
		return
	}
	for len(f.claims) > 0 {
		if f.takeAnswer(f.life) != nil || f.life.Err() != nil {
			return // which the next one who asks finds out about
		}
	}
	if !f.place.hasLocks() && !f.isEmpty() {
		return // others have enough to do
	}
	shared := f.ready
	f.ready = nil
	for _, m := range shared {
		if m.lock != nil {
			f.edge.release(m)
			f.backlog.add(f.backlog.items[m.name.whole])
		} else {
			f.edge.putBack(m)
		}
	}
}

// isEmpty reports whether nothing is left in the queue.
func (f *fetcher) isEmpty() bool {
	stat, err := f.place.client.CheckExists().ForPath(builders.InOneFlight(f.root), f.place.path)
	return err == nil && stat != nil && stat.NumChildren == 0
}

// newID returns the id of the next claim.
func (f *fetcher) newID() string {
	f.claimed++
	return fmt.Sprint(f.id, "-", f.claimed)
}
