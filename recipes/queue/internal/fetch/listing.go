package fetch

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/recipes/queue/internal/claim"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
)

// listing is a list of the queue and of its locks.
type listing struct {
	locks    *builders.Future[[]string] // nil without a lock path
	children builders.Future[[]string]
}

func (l *listing) isDone() bool {
	return reply.IsDone(l.children) && (l.locks == nil || reply.IsDone(*l.locks))
}

// refresh lists the queue when the next claim needs it. It waits for the list only if nothing is claimed.
func (f *Fetcher) refresh(ctx context.Context) error {
	hasItems := f.backlog.free+len(f.prefetched) > 0
	switch f.mode {
	case outdated:
		return f.watchAll(ctx)
	case unknown:
		if f.kind.IsSorted() && !f.unsupported {
			return f.watchAll(ctx)
		}
		return f.watchPath(ctx)
	case watched:
		if f.isWorthWatching() {
			return nil
		}
		f.endWatching()
		return f.watchPath(ctx)
	case empty:
		if hasItems || len(f.claims) > 0 || f.unsupported { // the watch of the list reports new items
			return nil
		}
		return f.watchAll(ctx)
	case listed:
		if hasItems {
			return nil
		}
		f.list()
	case relisting:
		if hasItems {
			return nil
		}
	}
	return f.awaitList(ctx)
}

// isWorthWatching reports whether to go on watching all items: events cost less than lists, or new items go first.
func (f *Fetcher) isWorthWatching() bool {
	return f.kind.IsSorted() || f.busy < maxBusy && f.backlog.free < maxWatched
}

// awaitList takes the list that is on its way. While items are claimed it does not wait for it.
func (f *Fetcher) awaitList(ctx context.Context) error {
	if len(f.claims) > 0 && !f.listing.isDone() {
		return nil
	}
	if err := f.listed(ctx); err != nil || f.backlog.free > 0 || len(f.claims) > 0 {
		return err
	}
	return f.watchAll(ctx)
}

// watchAll watches items and locks, and lists them.
func (f *Fetcher) watchAll(ctx context.Context) error {
	if f.unsupported {
		return nil
	}
	f.discard()
	waiting, cancel := f.flightWithin(ctx)
	defer cancel()
	if err := f.addWatch(waiting); err != nil || f.unsupported {
		return err
	}
	f.list()
	return f.listed(ctx)
}

// addWatch watches all items and locks if the server has such watches.
func (f *Fetcher) addWatch(flight context.Context) error {
	err := f.watch.All(flight)
	switch {
	case err == nil:
		f.mode.watch()
	case reply.IsRefusal(err):
		f.mode.unwatch()
		f.unsupported, f.session = true, f.paths.Client.Session()
		return nil
	default:
		f.mode.doubt()
	}
	return err
}

// flightWithin returns the flight for a request whose answer is not awaited after the end of ctx.
func (f *Fetcher) flightWithin(ctx context.Context) (flight context.Context, cancel func()) {
	flight, end := context.WithCancel(f.flight)
	stop := context.AfterFunc(ctx, end)
	return flight, func() { stop(); end() }
}

// watchPath watches the path alone, and lists the queue.
func (f *Fetcher) watchPath(ctx context.Context) error {
	f.discard()
	exists := f.watch.PathOnly(f.flight)
	f.list()
	if _, err := exists.Wait(ctx); err != nil && !reply.IsRefusal(err) {
		f.mode.doubt()
		return err
	}
	return f.listed(ctx)
}

// discard discards what is known of the queue.
func (f *Fetcher) discard() {
	f.prefetched = nil
	f.backlog.clear()
}

// unwatch ends the watches of items and locks. The path stays watched because of the items that are ours.
func (f *Fetcher) unwatch() {
	if !f.mode.isWatching() {
		return
	}
	f.endWatching()
	exists := f.watch.PathOnly(f.flight)
	_, _ = exists.Wait(f.life)
}

func (f *Fetcher) endWatching() {
	f.mode.unwatch()
	f.checkAt = time.Time{}
	f.watch.Remove(f.flight)
}

// list starts to list the queue. The locks are listed first. If a lock disappears between the two lists, either its
// item disappears, too, or the recorded events have the end of the lock.
func (f *Fetcher) list() {
	l := &listing{}
	list := f.children(f.unsupported)
	if f.paths.HasLocks() {
		locks := list.Submit(f.flight, f.paths.Locks)
		l.locks = &locks
	}
	l.children = list.Submit(f.flight, f.paths.Queue)
	f.listing = l
	f.mode.relist()
}

// children returns the request for a list, which is watched where no other watch is.
func (f *Fetcher) children(watched bool) builders.GetChildren {
	list := f.paths.Client.GetChildren()
	if watched {
		return list.UsingWatcher(f.watch.Watcher)
	}
	return list
}

// listed waits for the list and applies it.
func (f *Fetcher) listed(ctx context.Context) (err error) {
	l := f.listing
	var locks []string
	if l.locks != nil {
		locks, err = l.locks.Wait(ctx)
	}
	children, childrenErr := l.children.Wait(ctx)
	if err == nil {
		err = childrenErr
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		f.mode.doubt()
		return f.paths.Create(ctx)
	case err != nil:
		f.mode.doubt()
		return err
	}
	since := f.takeEvents()
	f.endQuarantines()
	if f.mode.isKnown() {
		f.found(children, locks, since)
	}
	return nil
}

// found applies a list, and the events since it was requested.
func (f *Fetcher) found(children, locks []string, since []claim.Event) {
	f.backlog.fill(children, locks)
	f.quarantine.Keep(func(name string) bool { return f.backlog.items[name] != nil })
	for name := range f.quarantine.Items {
		f.takeQuarantined(name)
	}
	for _, c := range f.claims {
		isUnlocked := f.backlog.take(f.backlog.items[c.Node().Whole])
		if l, ok := c.(*claim.LockClaim); ok && isUnlocked {
			l.Unlocks = claim.UnlockedInList
		}
	}
	f.others = len(children) - len(f.backlog.items)
	if f.mode.isWatching() {
		f.checkAt = time.Now().Add(checkPause)
	}
	f.noteAll(since)
	f.mode.found(f.backlog.free)
}
