package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/hook"
	"github.com/gocurator/curator/internal/report"
	"github.com/gocurator/curator/internal/waitqueue"
)

// engine keeps a copy of a tree. It works in four steps, of which the first three have a file each:
//
//   - watch: the engine sets a recursive watch, and sets it again in a new session. Its events name the nodes to read.
//   - load: the engine reads the wanted nodes, many with one request.
//   - apply: an answer becomes the state of its node and determines the next reads.
//   - notify: the listeners receive the changes in order.
//
// # Hints and facts
//
// An event is a hint: it makes the engine read a node, and changes nothing else. A list of children and a lost
// connection are hints too. Only the answer to a read of a node is a fact. If a hint arrives while its node is being
// read, the engine reads the node again, because the answer may be older than the hint. So the copy passes through
// states that a client which reads the nodes has seen, and never goes back:
//
//   - On one connection the answers arrive in the order of the server's transactions. They reach the engine in that
//     order, because all events and answers pass through one queue of the client.
//   - On the next connection of the session, a server refuses a client that has seen newer transactions than the server
//     has. Facts are answers, and the client records the transaction of each answer. It does not record the transaction
//     of an event. If the engine removed a node on an event, a server that lags could show the node again.
//   - In a new session, the server has the transaction that created the session, which is newer than everything the
//     client saw. A local session has no such transaction, so a sync precedes the reads. A read-only server refuses the
//     sync, and a cache that is loaded reads nothing from it.
//
// # Identity
//
// The czxid identifies a node: a node that was deleted and created again has another czxid, whatever its versions. The
// mzxid identifies its data, and the pzxid its children. Versions restart with each new node, so they identify nothing.
// A different zxid is a change. The engine does not test which zxid is larger, because a tree that was restored from a
// backup has smaller ones.
//
// # Completeness
//
// The engine requests the watch before the reads, on the same connection. So a change after a read has an event. On a
// new connection all nodes are wanted, because a server does not send the events that a persistent watch missed. It
// does send them to one-shot watches, within the session. A list of children that is as new as the pzxid of its node,
// together with the later events, contains all children. A node whose read failed stays wanted. After a lost connection
// it is read on the next connection; after an error of the server it is read again with growing pauses.
type engine struct {
	root     *node
	settings settings
	watcher  *callbacks.Watcher
	tasks    tasks            // the tasks of the loop
	decoding waitqueue.Serial // decompresses what is read
	listener func(ctx context.Context, ev Event)
	obs      report.Cache
	*lifecycle
	ready    chan error // closed when the first load is complete
	released bool       // close has dropped the tree; used with life held

	// The state that readers see. The loop changes it with mu held.
	mu        sync.RWMutex
	nodes     map[string]*node
	failed    map[*node]failure
	followers map[*mailbox[Event]]struct{}

	loop // used by the loop only
}

// loop is the state of the loop.
type loop struct {
	flight      context.Context // pipeline of the reads on this connection; nil without a connection
	session     int64           // of the last flight
	watching    bool            // a watch is set in this session
	oneShot     bool            // the watches are one-shot: the server has no others, or the cache has a single node
	single      bool            // each read is a request of its own: the server has no multiRead
	needsSetup  bool            // the setup of this connection is not sent yet
	syncing     bool            // the reads wait for the sync of a new session
	paused      bool            // the client has too many pending operations
	loaded      bool            // the first load is complete
	announced   bool            // the listener received an event of a complete load after the last change
	todo        []*node         // wanted nodes, in the order of their reads
	batches     int             // requests under way
	requests    uint32          // requests so far
	retries     int             // retries since the last new failure of a node
	limit       int             // maximum number of reads in one request
	meanSize    int             // running mean of the data size of a node, in bytes
	entries     int             // nodes in the cache
	unreadable  int             // nodes in failed, as reported to telemetry
	epochs      []*epoch        // the epochs with pending reads, and the current one
	retry       *time.Timer
	retryAt     time.Time
	reconnectAt time.Time // start of the reads on a new connection; zero without a delay
	removeState func()
}

// newEngine returns the engine of a cache. It does not validate path: start does.
func newEngine(
	client *framework.Client, title, recipe, path string, listener func(ctx context.Context, ev Event), opts ...Option,
) *engine {
	s := settingsOf(opts)
	e := &engine{
		settings: s, listener: listener, lifecycle: newLifecycle(client, title+" "+path),
		obs:    report.NewCache(hook.Telemetry(client), recipe, s.name, path),
		ready:  make(chan error),
		failed: make(map[*node]failure), followers: make(map[*mailbox[Event]]struct{}),
		loop: loop{
			limit: maxReads, meanSize: firstMean, epochs: []*epoch{new(epoch)},
			// A persistent watch of one node takes the mode from a recursive one of the same client on a server before 3.9.
			oneShot: s.maxDepth == 0,
		},
	}
	e.root = &node{path: path}
	e.nodes = map[string]*node{path: e.root}
	if e.settings.storage == nil {
		e.settings.storage = &nodeStorage{engine: e, dataless: s.dataless}
	}
	e.watcher = callbacks.NewWatcher(func(_ context.Context, ev zk.Event) { e.post(func() { e.hint(ev) }) })
	return e
}

// start begins to watch and load, and does not wait. It calls first before any listener is called.
func (e *engine) start(first func()) error {
	return e.begin(e.root.path, func() {
		e.clear() // a storage may still have the nodes of an earlier cache
		first()
		e.obs.Started(e.ctx)
		e.retry = time.AfterFunc(time.Hour, func() { e.post(e.retryDue) })
		e.retry.Stop() // until wake
		e.removeState = e.client.AddConnectionStateListener(e.connectionChanged)
		e.post(e.wantAll, e.retryDue) // which connects
	}, func() {
		e.removeState()
		e.tasks.close()
		e.finish()
	})
}

// close stops the cache. No listener call begins after it returns. The end of the client stops it too, and leaves its
// contents to the program until then.
func (e *engine) close() {
	e.end(ErrClosed)
	e.life.Lock()
	defer e.life.Unlock()
	if e.began && !e.released && !e.settings.keepOnClose {
		e.released = true
		e.clear()
		e.release()
	}
}

// release drops the tree of a closed cache: the program may keep the cache.
func (e *engine) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.root.below, e.root.kept = nil, nil
	e.nodes, e.failed, e.loop = map[string]*node{e.root.path: e.root}, nil, loop{}
}

// clear empties the storage.
func (e *engine) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settings.storage.Clear()
	e.entries = 0
}

// post queues tasks of the loop. The loop has a goroutine only while there are tasks, because a program may have
// thousands of idle caches.
func (e *engine) post(tasks ...func()) {
	if e.tasks.put(tasks...) {
		go e.run()
	}
}

// run is the loop of the engine. All decisions are made in it. A task never blocks.
func (e *engine) run() {
	for tasks := e.tasks.take(); tasks != nil; tasks = e.tasks.take() {
		if e.ctx.Err() != nil {
			continue
		}
		e.mu.Lock()
		for _, task := range tasks {
			task()
		}
		e.mu.Unlock()
		e.load()
		e.settle()
		e.countUnreadable(len(e.failed))
	}
}

// finish stops what the loop has begun. The loop has ended.
func (e *engine) finish() {
	e.retry.Stop()
	e.obs.Entries(context.WithoutCancel(e.ctx), -e.entries)
	e.countUnreadable(0)
	for path := range e.nodes {
		if e.oneShot || path == e.root.path {
			e.unwatch(e.watcher, path)
		}
	}
}

// countUnreadable reports the number of nodes that cannot be read to telemetry.
func (e *engine) countUnreadable(n int) {
	e.obs.Unreadable(context.WithoutCancel(e.ctx), n-e.unreadable)
	e.unreadable = n
}

// settle releases the fences that are reached, and sends an event if nothing is pending.
func (e *engine) settle() {
	if e.flight == nil || !e.watching && !e.oneShot {
		return
	}
	for len(e.epochs) > 1 && e.epochs[0].pending == 0 {
		close(e.epochs[0].reached)
		e.epochs = e.epochs[1:]
	}
	switch {
	case e.epochs[0].pending > 0 || e.announced:
		return
	case e.withoutChroot() != nil && !e.loaded: // the load is complete when the chroot is there
		return
	case e.loaded:
		e.notify(Event{Type: reloaded})
	default:
		e.loaded = true
		close(e.ready)
		e.notify(Event{Type: Initialized, ready: true})
	}
	e.announced = true
}

// notify queues a call of the listener, after the earlier calls.
func (e *engine) notify(ev Event) {
	e.do(func(ctx context.Context) {
		if ev.ready && ev.New != nil { // during the first load the age of a node is no lag
			e.obs.Notified(ctx, ev.New.Stat.Mtime)
		}
		e.listener(ctx, ev)
	})
}

// notifyChange sends the change of a node to the listener and the followers.
func (e *engine) notifyChange(ev Event) {
	e.announced, ev.ready = false, e.loaded
	e.notify(ev)
	for f := range e.followers {
		f.put(ev)
	}
}

// await waits until reached receives the result or is closed.
func (e *engine) await(ctx context.Context, reached <-chan error) error {
	select {
	case err := <-reached:
		return err
	case <-ctx.Done():
		return hook.EndOf(ctx, e.client)
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
}

// sync waits until the cache contains everything that was written before the call: see CuratorCache.Sync. It commits a
// transaction that changes nothing, makes the nodes wanted that could not be read, and adds a fence. A majority of the
// servers commits the transaction, and its answer arrives after the events of all earlier writes.
func (e *engine) sync(ctx context.Context) error {
	check := e.client.TransactionOp().Check().ForPath(e.root.path)
	for {
		if err := e.checkRunning(); err != nil {
			return err
		}
		reached := make(chan error, 1)
		answered := func(_ context.Context, ev callbacks.Event) {
			if ev.Err != nil && !errors.Is(ev.Err, zk.ErrNoNode) && !errors.Is(ev.Err, zk.ErrNoAuth) { // not committed
				reached <- ev.Err
				return
			}
			e.post(e.readFailed, e.findChroot, func() { e.addFence(reached) })
		}
		err := e.client.Transaction().InBackground(answered).WithUnhandledErrorListener(ignoreError).
			ForOperations(builders.OutOfFlight(ctx), check)
		if err == nil {
			err = e.await(ctx, reached)
		}
		if err == nil {
			return e.noChroot()
		}
		if !waitqueue.IsPassing(err) {
			return err
		}
		if err := waitqueue.AwaitConnection(ctx, e.client); err != nil {
			return err
		}
	}
}

// findChroot looks for the chroot of a root that does not exist: no event shows that the chroot is deleted.
func (e *engine) findChroot() {
	if !e.root.live && hook.HasChroot(e.client) {
		e.want(e.root, chroot, e.epoch())
	}
}

// awaitLoad waits until the first load is complete.
func (e *engine) awaitLoad(ctx context.Context) error {
	if err := e.checkRunning(); err != nil {
		return err
	}
	return e.await(ctx, e.ready)
}

// awaitReady is awaitLoad that does not wait for a missing chroot: it looks for it, and fails.
func (e *engine) awaitReady(ctx context.Context) error {
	for {
		if err := e.checkRunning(); err != nil {
			return err
		}
		reached := make(chan error)
		e.post(func() {
			if e.withoutChroot() != nil && !e.loaded {
				e.want(e.root, data, e.epoch())
			}
			e.addFence(reached)
		})
		select {
		case <-e.ready:
			return nil
		case <-reached:
		case <-ctx.Done():
			return hook.EndOf(ctx, e.client)
		case <-e.ctx.Done():
			return context.Cause(e.ctx)
		}
		if err := e.noChroot(); err != nil {
			return err
		}
	}
}

// noChroot returns the error of a missing chroot, or nil if there is one, or if that is not known.
func (e *engine) noChroot() error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.withoutChroot()
}

// withoutChroot is noChroot with mu held.
func (e *engine) withoutChroot() error {
	if f := e.failed[e.root]; f.of&chroot != 0 {
		return f.err
	}
	return nil
}
