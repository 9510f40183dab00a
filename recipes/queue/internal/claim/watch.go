package claim

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
	"github.com/gocurator/curator/internal/waitqueue"
	"github.com/gocurator/curator/recipes/queue/internal/node"
	"github.com/gocurator/curator/recipes/queue/internal/reply"
	"github.com/gocurator/curator/zkpath"
)

// Watch receives the events of a queue. It watches the path alone, which costs nothing until the path is deleted,
// or all items and locks too. It records an event in the reading goroutine: in order, and before the answers that came
// after it.
type Watch struct {
	Paths   *node.Paths
	Watcher *callbacks.Watcher
	wake    chan struct{} // there are events, or some were missed

	mu     sync.Mutex
	events []Event
	missed bool               // the events are incomplete: the queue must be listed
	gaps   int64              // how often the connection or the watch of the path was lost
	locks  map[string][]*Lock // of claims that are not settled, by item
}

// Event is a change of an item or its lock.
type Event struct {
	What Change
	Name string
}

// Change is the kind of a change.
type Change int

// The changes. Locked and Unlocked are those of an item whose lock is created or deleted.
const (
	Created Change = iota
	Deleted
	Locked
	Unlocked
)

// maxEvents bounds the waiting events: beyond that the queue is listed.
const maxEvents = 512

// NewWatch returns a watch that watches nothing yet.
func NewWatch(p *node.Paths) *Watch {
	w := &Watch{Paths: p, wake: make(chan struct{}, 1)}
	w.locks = make(map[string][]*Lock)
	w.Watcher = hook.InPlaceWatcher(w.note).(*callbacks.Watcher)
	return w
}

// PathOnly submits the watch of the path. The caller must wait for the answer.
func (w *Watch) PathOnly(flight context.Context) builders.Future[*zk.Stat] {
	return w.Paths.Client.CheckExists().UsingWatcher(w.Watcher).Submit(flight, w.Paths.Queue)
}

// All watches the items and the locks.
func (w *Watch) All(flight context.Context) error {
	add := w.Paths.Client.Watches().Add().UsingWatcher(w.Watcher)
	err := add.ForPath(flight, w.Paths.Queue)
	if err == nil && w.Paths.HasLocks() {
		err = add.ForPath(flight, w.Paths.Locks)
	}
	return err
}

// Remove ends all watches, in the background.
func (w *Watch) Remove(ctx context.Context) {
	waitqueue.Unwatch(ctx, w.Paths.Client, w.Watcher, w.Paths.Queue)
	if w.Paths.HasLocks() {
		waitqueue.Unwatch(ctx, w.Paths.Client, w.Watcher, w.Paths.Locks)
	}
}

// Gap returns a number that grows when the connection or the watch of the path is lost. An event may be missing then.
func (w *Watch) Gap() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gaps
}

// follow starts to record whether the lock of a claim was deleted. It is called before the lock is created, so that no
// event is missed. Events arrive as long as all locks are watched.
func (w *Watch) follow(l *Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locks[l.name] = append(w.locks[l.name], l)
}

// submitted records the create of a lock. An event before its answer is about an earlier lock of the item.
func (w *Watch) submitted(l *Lock, created <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.created = created
	if !reply.IsClosed(created) {
		l.Deleted.Store(false)
	}
}

// forget ends follow.
func (w *Watch) forget(l *Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.locks[l.name], func(other *Lock) bool { return other == l })
	if w.locks[l.name] = left; len(left) == 0 {
		delete(w.locks, l.name)
	}
}

// noteDeletion records that the lock of an item was deleted. mu is held.
func (w *Watch) noteDeletion(name string) {
	for _, l := range w.locks[name] {
		if l.created == nil || reply.IsClosed(l.created) {
			l.Deleted.Store(true)
		}
	}
}

// Take returns the recorded events, and whether some were missed.
func (w *Watch) Take() (all []Event, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, missed = w.events, w.missed
	w.events, w.missed = nil, false
	select {
	case <-w.wake:
	default:
	}
	return all, missed
}

// Await waits for events, but no longer than until if that is not zero.
func (w *Watch) Await(ctx context.Context, until time.Time) {
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
func (w *Watch) note(ev zk.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reply.Nudge(w.wake)
	if len(w.events) >= maxEvents {
		w.events, w.missed = nil, true
	}
	parent, name := zkpath.Parent(ev.Path), zkpath.Node(ev.Path)
	switch {
	case ev.Type == zk.EventNotWatching: // the server has no persistent watches any more
		w.gaps++
		w.missed = true
	case !strings.HasPrefix(ev.Path, "/"):
		if ev.State != zk.StateHasSession {
			w.gaps++
		}
		w.missed = true
	case ev.Path == w.Paths.Queue, ev.Path == w.Paths.Locks:
		w.missed = true
	case parent == w.Paths.Queue && ev.Type == zk.EventNodeCreated:
		w.events = append(w.events, Event{Created, name})
	case parent == w.Paths.Queue && ev.Type == zk.EventNodeDeleted:
		w.events = append(w.events, Event{Deleted, name})
	case parent == w.Paths.Locks && ev.Type == zk.EventNodeCreated:
		w.events = append(w.events, Event{Locked, name})
	case parent == w.Paths.Locks && ev.Type == zk.EventNodeDeleted:
		w.noteDeletion(name)
		w.events = append(w.events, Event{Unlocked, name})
	}
}
