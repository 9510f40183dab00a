package queue

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// queueWatch receives the events of a queue. It watches the path alone, which costs nothing until the path is deleted,
// or all items and locks too. It records an event in the reading goroutine: in order, and before the answers that came
// after it.
type queueWatch struct {
	place   *place
	watcher *callbacks.Watcher
	wake    chan struct{} // there are events, or some were missed
	isOfAll bool          // the path's deletion is an event, too, not a reason to list the queue

	mu     sync.Mutex
	news   []news
	missed bool // the events are incomplete: the queue must be listed
	epoch  int64
	path   int64                  // czxid of the path in the last list, 0 before
	gaps   int64                  // how often the connection or the watch of the path was lost
	locks  map[string][]*itemLock // of claims that are not settled, by item
}

// news is an event: a change of an item or its lock.
type news struct {
	what change
	name string
}

type change int

const (
	created change = iota
	deleted
	locked
	unlocked
	emptied // the path was deleted
)

// maxNews bounds the waiting events: beyond that the queue is listed.
const maxNews = 512

func newQueueWatch(p *place) *queueWatch {
	w := &queueWatch{place: p, wake: make(chan struct{}, 1), epoch: 1}
	w.locks = make(map[string][]*itemLock)
	w.watcher = w.newWatcher()
	return w
}

func (w *queueWatch) newWatcher() *callbacks.Watcher {
	return hook.InPlaceWatcher(w.note).(*callbacks.Watcher)
}

// pathOnly submits the watch of the path. The caller must wait for the answer.
func (w *queueWatch) pathOnly(flight context.Context) builders.Future[*zk.Stat] {
	return w.place.client.CheckExists().UsingWatcher(w.watcher).Submit(flight, w.place.path)
}

// all watches the items and the locks.
func (w *queueWatch) all(flight context.Context) error {
	add := w.place.client.Watches().Add().UsingWatcher(w.watcher)
	err := add.ForPath(flight, w.place.path)
	if err == nil && w.place.hasLocks() {
		err = add.ForPath(flight, w.place.lockPath)
	}
	return err
}

// remove ends all watches, in the background.
func (w *queueWatch) remove(ctx context.Context) {
	waitqueue.Unwatch(ctx, w.place.client, w.watcher, w.place.path)
	if w.place.hasLocks() {
		waitqueue.Unwatch(ctx, w.place.client, w.watcher, w.place.lockPath)
	}
}

// reset prepares for new watches after others were removed. The late removal must not affect the new ones.
func (w *queueWatch) reset() {
	w.take()
	w.watcher = w.newWatcher()
}

// current returns a number that grows when the path is deleted. An item that was read before may be another one by now.
func (w *queueWatch) current() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epoch
}

// gap returns a number that grows when the connection or the watch of the path is lost. An event may be missing then.
func (w *queueWatch) gap() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gaps
}

// follow starts to record whether the lock of a claim was deleted. It is called before the lock is created, so that no
// event is missed. Events arrive as long as all locks are watched.
func (w *queueWatch) follow(l *itemLock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locks[l.name] = append(w.locks[l.name], l)
}

// submitted records the create of a lock. An event before its answer is about an earlier lock of the item.
func (w *queueWatch) submitted(l *itemLock, created <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.created = created
	if !isClosed(created) {
		l.deleted.Store(false)
	}
}

// forget ends follow.
func (w *queueWatch) forget(l *itemLock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.locks[l.name], func(other *itemLock) bool { return other == l })
	if w.locks[l.name] = left; len(left) == 0 {
		delete(w.locks, l.name)
	}
}

// noteDeletion records that the lock of an item was deleted. mu is held.
func (w *queueWatch) noteDeletion(name string) {
	for _, l := range w.locks[name] {
		if l.created == nil || isClosed(l.created) {
			l.deleted.Store(true)
		}
	}
}

// listed records the czxid of the path at the time of the list, and returns the epoch of the list. before is the epoch
// of the list before, 0 for the first.
func (w *queueWatch) listed(path, before int64) (epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.path != path && w.epoch == before { // it was deleted, without an event
		w.epoch++
	}
	w.path = path
	return w.epoch
}

// verify checks whether the path was deleted without an event.
func (w *queueWatch) verify(ctx context.Context) {
	before := w.current()
	stat, err := w.place.client.CheckExists().Submit(builders.Pipelined(ctx), w.place.path).Wait(ctx)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch == before && (stat == nil || stat.Czxid != w.path) {
		w.epoch++
	}
}

// take returns the recorded events, and whether some were missed.
func (w *queueWatch) take() (all []news, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, missed = w.news, w.missed
	w.news, w.missed = nil, false
	select {
	case <-w.wake:
	default:
	}
	return all, missed
}

// await waits for events, but no longer than until if that is not zero.
func (w *queueWatch) await(ctx context.Context, until time.Time) {
	var over <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-w.wake:
	case <-over:
	case <-ctx.Done():
	}
}

// note records an event.
func (w *queueWatch) note(ev zk.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	nudge(w.wake)
	if len(w.news) >= maxNews {
		w.news, w.missed = nil, true
	}
	parent, name := zkpath.Parent(ev.Path), zkpath.Node(ev.Path)
	switch {
	case w.isOfAll && ev.Path == w.place.path && ev.Type == zk.EventNodeDeleted:
		w.epoch++
		w.news = append(w.news, news{emptied, ""})
	case ev.Path == w.place.path && ev.Type == zk.EventNodeDeleted:
		w.epoch++
		w.missed = true
	case !strings.HasPrefix(ev.Path, "/"):
		if ev.State != zk.StateHasSession {
			w.gaps++
		}
		w.missed = true
	case ev.Path == w.place.path && ev.Type == zk.EventNodeDataChanged:
		w.gaps++ // the path's watch may have ended: settlements check that it is the same item
		w.missed = true
	case ev.Path == w.place.path, ev.Path == w.place.lockPath:
		w.missed = true
	case parent == w.place.path && ev.Type == zk.EventNodeCreated:
		w.news = append(w.news, news{created, name})
	case parent == w.place.path && ev.Type == zk.EventNodeDeleted:
		w.news = append(w.news, news{deleted, name})
	case parent == w.place.lockPath && ev.Type == zk.EventNodeCreated:
		w.news = append(w.news, news{locked, name})
	case parent == w.place.lockPath && ev.Type == zk.EventNodeDeleted:
		w.noteDeletion(name)
		w.news = append(w.news, news{unlocked, name})
	}
}
