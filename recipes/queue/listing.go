package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
)

// listing is a list of the queue and of its locks.
type listing struct {
	locks    *builders.Future[[]string] // nil without a lock path
	children builders.Future[[]string]
	stat     zk.Stat
	news     []news // events that came since
}

func (l *listing) isDone() bool { return isDone(l.children) && (l.locks == nil || isDone(*l.locks)) }

// refresh lists the queue when the next claim needs it. It waits for the list only if nothing is claimed.
func (f *fetcher) refresh(ctx context.Context) error {
	switch {
	case f.stale && f.watching, f.stale && f.kind.isSorted() && !f.unsupported:
		return f.watchAll(ctx)
	case f.stale:
		return f.watchPath(ctx)
	case f.watching && (f.kind.isSorted() || f.busy < maxBusy && f.backlog.free < maxWatched):
		return nil
	case f.watching:
		f.endWatching()
		return f.watchPath(ctx)
	case f.backlog.free+len(f.prefetched) > 0:
		return nil
	}
	if f.listing == nil {
		switch {
		case f.lastEmpty && len(f.claims) > 0:
			return nil
		case f.lastEmpty && f.unsupported: // the watch of the list reports new items
			return nil
		case f.lastEmpty:
			return f.watchAll(ctx)
		}
		f.list()
	}
	if len(f.claims) > 0 && !f.listing.isDone() {
		return nil
	}
	if err := f.listed(ctx); err != nil || f.backlog.free > 0 || len(f.claims) > 0 {
		return err
	}
	return f.watchAll(ctx)
}

// watchAll watches items and locks, and lists them.
func (f *fetcher) watchAll(ctx context.Context) error {
	if f.unsupported {
		return nil
	}
	f.begin()
	waiting, cancel := f.flightWithin(ctx)
	defer cancel()
	if err := f.addWatch(waiting); err != nil || f.unsupported {
		f.stale = true
		return err
	}
	f.list()
	return f.listed(ctx)
}

// flightWithin returns the flight for a request whose answer is not awaited after the end of ctx.
func (f *fetcher) flightWithin(ctx context.Context) (flight context.Context, cancel func()) {
	flight, end := context.WithCancel(f.flight)
	stop := context.AfterFunc(ctx, end)
	return flight, func() { stop(); end() }
}

// watchPath watches the path alone, and lists the queue.
func (f *fetcher) watchPath(ctx context.Context) error {
	f.begin()
	exists := f.watch.pathOnly(f.flight)
	f.list()
	if _, err := exists.Wait(ctx); err != nil && !isRefusal(err) {
		f.stale = true
		return err
	}
	return f.listed(ctx)
}

// begin discards the known state of the queue.
func (f *fetcher) begin() {
	f.stale, f.lastEmpty, f.listing, f.prefetched = false, false, nil, nil
	f.backlog.clear()
}

// unwatch ends the watches of items and locks. The path stays watched because of the items that are ours.
func (f *fetcher) unwatch() {
	if !f.watching {
		return
	}
	f.endWatching()
	exists := f.watch.pathOnly(f.flight)
	_, _ = exists.Wait(f.life)
}

func (f *fetcher) endWatching() {
	f.watching, f.checkAt = false, time.Time{}
	f.watch.remove(f.flight)
}

// list starts to list the queue. The locks are listed first. If a lock disappears between the two lists, either its
// item disappears, too, or the recorded events have the end of the lock.
func (f *fetcher) list() {
	l := &listing{}
	list := f.children(f.unsupported)
	if f.place.hasLocks() {
		locks := list.Submit(f.flight, f.place.lockPath)
		l.locks = &locks
	}
	l.children = list.StoringStatIn(&l.stat).Submit(f.flight, f.place.path)
	f.listing = l
}

// listed waits for the list and applies it.
func (f *fetcher) listed(ctx context.Context) (err error) {
	l := f.listing
	if l == nil {
		return nil
	}
	var locks []string
	if l.locks != nil {
		locks, err = l.locks.Wait(ctx)
	}
	children, childrenErr := l.children.Wait(ctx)
	if err == nil {
		err = childrenErr
	}
	if err == nil {
		f.takeNews()
	}
	f.listing = nil
	switch {
	case errors.Is(err, zk.ErrNoNode):
		f.stale = true
		return f.place.ensure(ctx)
	case err != nil:
		f.stale = true
		return err
	case f.stale:
		return nil
	}
	f.found(l, children, locks)
	return nil
}

// found applies a list.
func (f *fetcher) found(l *listing, children, locks []string) {
	f.epoch = f.watch.listed(l.stat.Czxid, f.epoch)
	f.backlog.fill(children, locks)
	f.quarantine.keep(func(name string) bool { return f.backlog.items[name] != nil })
	for name := range f.quarantine.items {
		f.takeQuarantined(name)
	}
	for _, c := range f.claims {
		isUnlocked := f.backlog.take(f.backlog.items[c.node().whole])
		if l, ok := c.(*lockClaim); ok && isUnlocked {
			l.unlocks = unlockedInList
		}
	}
	f.others = len(children) - len(f.backlog.items)
	if f.watching {
		f.checkAt = time.Now().Add(checkPause)
	}
	f.noteAll(l.news)
	f.lastEmpty = f.backlog.free == 0
}
