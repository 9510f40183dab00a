package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/recipes/internal/lineup"
)

// taker takes the items of a queue, one after the other, for as long as it is asked for the next. It lists the queue
// once for all the items in it, and again when all of them are claimed; what it is going to take is read ahead and
// claimed ahead, in one flight, as far as it helps: when the one who asks would have to wait it goes further, when another
// consumer was faster, or items lie claimed and unused, less far.
type taker[T any] struct {
	q    *queue[T]
	most int // how many may be claimed ahead

	changed chan zk.Event
	watcher *callbacks.Watcher

	listing *listing      // on its way, nil if there is none
	vain    bool          // the last one had nothing to take
	names   []nodeName    // listed and not looked at, in order
	later   time.Time     // when the first is due of those that are not, zero if there is none
	created int64         // how many nodes the queue ever had when it was listed
	since   int           // claims since it was last known that there are no newcomers
	looked  []*removal[T] // being read, in order
	begun   []claim[T]    // being claimed, in order
	ready   []*delivery[T]
	ahead   int
	misses  int // items in a row that were another's
	alone   int // so many are not removed together with others
	flight  context.Context
}

// next waits for an item and returns it, ours. It fails with the cause of the end of ctx, and when the client is closed.
func (t *taker[T]) next(ctx context.Context) (*delivery[T], error) {
	t.open()
	for {
		if len(t.ready) > 0 {
			d := t.ready[0]
			t.ready = t.ready[1:]
			return d, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d, err := t.step(ctx)
		switch {
		case d != nil:
			return d, nil
		case errors.Is(err, framework.ErrClosed):
			return nil, err
		case err != nil && ctx.Err() == nil:
			t.mend(ctx, err)
		}
	}
}

// step claims what is to be claimed and looks what has come of the first claim. Without any it waits for one.
func (t *taker[T]) step(ctx context.Context) (*delivery[T], error) {
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	t.claim()
	if len(t.begun) == 0 {
		return nil, t.await(ctx)
	}
	first := t.begun[0]
	waits := !first.isDone()
	d, err := first.end()
	if err != nil {
		return nil, err
	}
	t.begun[0] = nil
	t.begun = t.begun[1:]
	t.adapt(d != nil, waits)
	if t.misses++; d != nil {
		t.misses = 0
	}
	if isUsedUp(t.misses, len(t.names)) {
		t.names, t.misses = nil, 0
	}
	return d, nil
}

// isUsedUp reports whether a new list is cheaper than following one of which so many names are left, after so many misses in
// a row: others were faster.
func isUsedUp(misses, left int) bool { return misses > 16+left/32 }

func (t *taker[T]) open() {
	if t.watcher == nil {
		t.changed = make(chan zk.Event, 1)
		t.watcher = callbacks.NewChanWatcher(t.changed)
		t.flight = builders.InOneFlight(t.q.root)
	}
}

// refresh lists the queue when everything in the last list was claimed, or newcomers go before what is left of it. It
// waits for the list only if nothing is claimed.
func (t *taker[T]) refresh(ctx context.Context) error {
	if len(t.names)+len(t.looked) > 0 {
		return t.lookForNewcomers(ctx)
	}
	if t.listing == nil {
		if len(t.begun) > 0 && t.vain && len(t.changed) == 0 {
			return nil
		}
		t.list()
	}
	if len(t.begun) > 0 && !t.listing.isDone() {
		return nil
	}
	return t.listed(ctx)
}

func (t *taker[T]) lookForNewcomers(ctx context.Context) error {
	if t.q.kind.refresh == 0 || t.since < t.q.kind.refresh {
		return nil
	}
	stat, err := t.q.client.CheckExists().ForPath(ctx, t.q.path)
	if err != nil {
		return err
	}
	if stat == nil || everCreated(stat) != t.created {
		t.list()
		return t.listed(ctx)
	}
	t.since = 0
	return nil
}

// everCreated grows with each node that is created in the queue, and with nothing else: the version counts creates and
// deletes.
func everCreated(stat *zk.Stat) int64 { return int64(stat.Cversion) + int64(stat.NumChildren) }

// listing is a list of the queue and of its locks.
type listing struct {
	children builders.Future[[]string]
	stat     zk.Stat
	locks    *builders.Future[[]string] // nil without a lock path
	taken    map[string]struct{}        // what is ours already
}

func (l *listing) isDone() bool { return isDone(l.children) && (l.locks == nil || isDone(*l.locks)) }

// list begins to list the queue, and watches it.
func (t *taker[T]) list() {
	select {
	case <-t.changed: // of before
	default:
	}
	l := &listing{taken: t.q.heldNames()}
	for _, c := range t.begun {
		l.taken[c.node().whole] = struct{}{}
	}
	list := t.q.client.GetChildren().UsingWatcher(t.watcher)
	l.children = list.StoringStatIn(&l.stat).Submit(t.flight, t.q.path)
	if t.q.lockPath != "" {
		locks := list.Submit(t.flight, t.q.lockPath)
		l.locks = &locks
	}
	t.listing = l
}

// listed waits for the list.
func (t *taker[T]) listed(ctx context.Context) error {
	l := t.listing
	t.listing = nil
	children, err := l.children.Wait(ctx)
	if l.locks != nil {
		locked, lockErr := l.locks.Wait(ctx)
		if err == nil {
			err = lockErr
		}
		for _, name := range locked {
			l.taken[name] = struct{}{}
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		if err = t.q.ensure(ctx); err == nil {
			t.list()
			return t.listed(ctx)
		}
	}
	if err != nil {
		return err
	}
	for _, c := range t.begun {
		l.taken[c.node().whole] = struct{}{}
	}
	t.looked = nil
	t.names, t.later = t.q.candidates(children, l.taken)
	t.vain = len(t.names) == 0
	t.created, t.since = everCreated(&l.stat), 0
	return nil
}

// heldNames returns the names of what is ours by its lock.
func (q *queue[T]) heldNames() map[string]struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	names := make(map[string]struct{}, len(q.held))
	for name, d := range q.held {
		if d.session.Context().Err() == nil { // else its lock is gone
			names[name] = struct{}{}
		}
	}
	return names
}

// candidates returns those of the children that can be taken now, in order, and when the next will be due.
func (q *queue[T]) candidates(children []string, taken map[string]struct{}) (names []nodeName, later time.Time) {
	now := time.Now()
	q.mu.Lock()
	q.forgetSpoilt(children)
	for _, child := range children {
		n, found := parseName(child)
		_, other := taken[child]
		d, ours := q.held[child]
		ours = ours && d.session.Context().Err() == nil // else its lock is gone
		_, bad := q.spoilt[child]
		if !found || other || ours || bad {
			continue
		}
		if q.kind.delayed {
			if due := n.due(); due.After(now) {
				if later.IsZero() || due.Before(later) {
					later = due
				}
				continue
			}
		}
		names = append(names, n)
	}
	q.mu.Unlock()
	slices.SortFunc(names, q.kind.order)
	return names, later
}

// forgetSpoilt forgets those that are gone. mu is held.
func (q *queue[T]) forgetSpoilt(children []string) {
	if len(q.spoilt) == 0 {
		return
	}
	left := make(map[string]struct{})
	for _, child := range children {
		if _, bad := q.spoilt[child]; bad {
			left[child] = struct{}{}
		}
	}
	q.spoilt = left
}

// claim claims the first that are left, and reads the next.
func (t *taker[T]) claim() {
	if t.q.lockPath != "" {
		t.lock()
		return
	}
	if t.alone > 0 || len(t.begun) <= t.ahead/2 { // else more of them would go together a little later
		t.remove()
	}
	t.look()
}

// mayClaim reports whether another item is to be claimed, and counts it then.
func (t *taker[T]) mayClaim() bool {
	if len(t.begun) > t.ahead || len(t.names)+len(t.looked) == 0 {
		return false
	}
	if r := t.q.kind.refresh; r > 0 && t.since >= r {
		return false
	}
	t.since++
	return true
}

func (t *taker[T]) lock() {
	for t.mayClaim() {
		l := &locking[T]{q: t.q, name: t.names[0]}
		t.names = t.names[1:]
		l.begin(t.flight)
		t.begun = append(t.begun, l)
	}
}

// remove claims those that were read, in one transaction as long as nobody else takes some of them.
func (t *taker[T]) remove() {
	var together []*removal[T]
	for t.mayClaim() {
		t.look()
		r := t.looked[0]
		t.looked[0] = nil
		t.looked = t.looked[1:]
		t.begun = append(t.begun, r)
		if r.isReadable() {
			together = append(together, r)
		}
	}
	if len(together) > 1 && t.alone == 0 {
		t.q.removeTogether(t.flight, together, func() { t.alone = aloneAfterFailure })
		return
	}
	for _, r := range together {
		t.alone = max(t.alone-1, 0)
		r.submit(t.flight)
	}
}

// aloneAfterFailure is how many items are removed one by one after some could not be removed together.
const aloneAfterFailure = 256

// look reads ahead, twice as far as is claimed ahead.
func (t *taker[T]) look() {
	for len(t.looked) < 2*t.ahead+1 && len(t.names) > 0 {
		t.looked = append(t.looked, t.q.look(t.flight, t.names[0]))
		t.names = t.names[1:]
	}
}

// adapt goes further ahead or less far, after an item was ours or not and the answer had to be waited for or not.
func (t *taker[T]) adapt(ours, waited bool) {
	most := t.most
	if r := t.q.kind.refresh; r > 0 {
		most = min(most, r-1)
	}
	switch {
	case !ours: // what was read ahead may be gone, too
		t.ahead /= 2
		for _, r := range slices.Backward(t.looked) {
			t.names = append(t.names, nodeName{})
			copy(t.names[1:], t.names)
			t.names[0] = r.name
		}
		t.looked = nil
	case waited:
		t.ahead = min(2*t.ahead+1, most)
	case len(t.begun) > 0 && t.begun[len(t.begun)-1].isDone():
		t.ahead = max(t.ahead-1, 0)
	}
}

// await waits until there may be something to take.
func (t *taker[T]) await(ctx context.Context) error {
	var due <-chan time.Time
	if !t.later.IsZero() {
		timer := time.NewTimer(time.Until(t.later))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-t.changed: // whatever it was: look again
	case <-due:
	case <-ctx.Done():
	}
	return nil
}

// mend goes on after an error: it finds out what has become of the claims, and begins with a new list.
func (t *taker[T]) mend(ctx context.Context, err error) {
	if !lineup.IsOutage(err) {
		t.q.report(ctx, errtext.Wrap(err, "queue", "%s", t.q.path))
		_ = pause(ctx, failurePause)
	} else if awaitConnection(ctx, t.q.client) != nil {
		return // next tells why
	}
	t.resolve()
	t.flight = builders.InOneFlight(t.q.root)
}

// resolve ends all claims.
func (t *taker[T]) resolve() {
	for _, c := range t.begun {
		d, err := c.end()
		if err != nil {
			d = c.resolve()
		}
		if d != nil {
			t.ready = append(t.ready, d)
		}
	}
	t.begun, t.looked, t.names, t.listing, t.vain = nil, nil, nil, nil, false
}

// close ends the taking, and returns what is ours and was not returned by next.
func (t *taker[T]) close() []*delivery[T] {
	if t.watcher == nil {
		return nil
	}
	t.resolve()
	left := t.ready
	t.ready = nil
	ctx := t.q.root
	unwatch(ctx, t.q.client, t.watcher, t.q.path)
	if t.q.lockPath != "" {
		unwatch(ctx, t.q.client, t.watcher, t.q.lockPath)
	}
	t.watcher = nil
	return left
}
