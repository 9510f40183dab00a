package cache

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/recipes/internal/waitqueue"
	"github.com/gocurator/curator/zkpath"
)

// engine keeps a copy of a tree. It works in four steps, with a file for each:
//
//   - watch: a recursive watch is set, and set again in a new session; its events say which nodes to read.
//   - load: the nodes that are wanted are read, many with one request.
//   - apply: an answer becomes the state of its node, and says what else to read.
//   - tell: what has changed is told to the listeners, in order.
//
// # Hints and facts
//
// An event is a hint: it says that a node has to be read, and changes nothing. So are a list of children and a
// connection that was lost. Only the answer to a read of a node is a fact. For a hint that comes while the node is
// being read, the node is read again: the answer may be older than the hint. So the copy goes through states that a
// client which reads the nodes has seen, and never goes back:
//
//   - The answers on one connection come in the order of the server's transactions, and so do they come here: all
//     events and answers come through the dispatcher of the client.
//   - On the next connection of the session the server refuses a client that has seen more than it knows. A fact is an
//     answer, and the client knows the transaction that an answer came after. That of an event it does not know; if a
//     deletion were believed on an event, a server that lags could show the node again.
//   - In a new session the server knows the transaction that has made it, which is newer than all that was seen. A
//     local session has none, so a sync goes ahead of the reads.
//
// # Identity
//
// The czxid says which node it is: one that was deleted and created again has another, whatever its versions. The mzxid
// says which data, the pzxid which children. Versions start anew with each node and say nothing. A zxid that differs is
// a change; none is compared for being larger, because a tree that was restored from a backup has smaller ones.
//
// # What cannot be missed
//
// The watch is requested ahead of the reads on the same connection, so what happens after a read is seen as an event. A
// new connection makes all nodes wanted, because the server does not send a persistent watch what it missed. With
// one-shot watches it does, within the session. A list of children that is as new as the pzxid of its node, and the
// events since, have all children. A read that fails keeps its node wanted: after a lost connection at once when there
// is another, after a refusal in growing pauses.
type engine struct {
	root     *node
	settings settings
	watcher  *callbacks.Watcher
	inbox    *mailbox[func()] // what the loop has to do
	listener func(ctx context.Context, n note)
	obs      telemetry.Cache
	*notifier
	ready chan struct{} // closed when everything was read once
	done  chan struct{} // closed when the loop has ended

	life  sync.Mutex
	state lifeState

	// What readers see. The loop changes it with mu held.
	mu        sync.RWMutex
	nodes     map[string]*node
	failed    map[*node]*failure
	watchErr  error // why no watch can be set
	followers map[*mailbox[Event]]struct{}

	loop // what only the loop sees
}

type lifeState int

const (
	latent lifeState = iota
	started
	closed
)

// loop is the state of the engine's goroutine.
type loop struct {
	flight      context.Context // of the reads on this connection; nil without one
	watching    bool            // a watch is set in this session
	oneShot     bool            // the server has no persistent watches
	greeting    bool            // the watch is to be requested on this connection
	ahead       bool            // nothing was changed since the listeners were told that all is read
	todo        []*node         // that are wanted, in this order
	batches     int             // under way
	refusals    int             // of the watch, one after the other
	limit       int             // reads in one batch, at most
	meanSize    int             // of the data of a node, a running mean
	generation  int32           // counts fences, and wraps
	pending     map[int32]int   // how many nodes are pending, by generation
	fences      []*fence
	retry       *time.Timer
	retryAt     time.Time
	reconnectAt time.Time // when the reading begins on a new connection; zero if it need not wait
	removeState func()
}

// newEngine returns the engine of a path that is valid.
func newEngine(
	client Client, title, recipe, path string, s settings, listener func(ctx context.Context, n note),
) *engine {
	e := &engine{
		settings: s, listener: listener, notifier: newNotifier(client, title+" "+path),
		obs:   telemetry.Of(client).NewCache(recipe, s.name, path),
		inbox: newMailbox[func()](),
		ready: make(chan struct{}), done: make(chan struct{}),
		failed: make(map[*node]*failure), followers: make(map[*mailbox[Event]]struct{}),
		loop: loop{
			limit: maxReads, meanSize: firstMean, pending: make(map[int32]int),
			generation: math.MaxInt32 - 2, // so that it wraps in every test
		},
	}
	e.root = &node{path: path}
	e.nodes = map[string]*node{path: e.root}
	if e.settings.storage == nil {
		e.settings.storage = &nodeStorage{nodes: e.nodes, dataless: s.dataless}
	}
	e.watcher = callbacks.NewWatcher(e.watched)
	return e
}

// start begins to watch and load, and does not wait. It calls first, which may be nil, before any listener is called.
func (e *engine) start(first func()) error {
	if err := zkpath.Validate(e.root.path, false); err != nil {
		return errtext.Wrap(err, "cache", "start")
	}
	e.life.Lock()
	defer e.life.Unlock()
	switch e.state {
	case started:
		return ErrStarted
	case closed:
		return ErrClosed
	}
	e.state = started
	if first != nil {
		first()
	}
	e.removeState = e.client.ConnectionStateListeners().AddListener(e.connectionChanged)
	go e.run()
	e.inbox.put(func() {
		e.wantAll()
		e.connectIfPossible()
	})
	return nil
}

// close ends the cache. No call of a listener begins after it.
func (e *engine) close() {
	e.life.Lock()
	was := e.state
	e.state = closed
	e.life.Unlock()
	e.cancel()
	switch was {
	case latent:
		close(e.done)
	case started:
		e.removeState()
		e.inbox.close()
		<-e.done
		e.clear()
	}
	e.notifier.close()
}

// clear empties the storage of a cache that is closed.
func (e *engine) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.settings.keepOnClose {
		e.settings.storage.Clear()
	}
}

// run is the goroutine that everything is decided on. It never blocks.
func (e *engine) run() {
	defer close(e.done)
	for e.ctx.Err() == nil {
		tasks := e.inbox.take()
		e.mu.Lock()
		for _, task := range tasks {
			task()
		}
		e.mu.Unlock()
		e.load()
		e.settle()
		if len(tasks) == 0 {
			<-e.inbox.wake
		}
	}
	if e.retry != nil {
		e.retry.Stop()
	}
	e.mu.Lock()
	for f := range e.followers {
		f.close()
	}
	e.obs.Entries(context.WithoutCancel(e.ctx), -e.liveNodes())
	e.mu.Unlock()
	e.unwatch()
}

// settle looks whether what others wait for has come about.
func (e *engine) settle() {
	if e.flight == nil || !e.watching && !e.oneShot {
		return
	}
	waiting := e.fences[:0]
	for _, f := range e.fences {
		if e.isPendingSince(f.generation) {
			waiting = append(waiting, f)
		} else {
			close(f.reached)
		}
	}
	e.fences = waiting
	if len(e.pending) > 0 || e.ahead {
		return
	}
	e.ahead = true
	first := false
	select {
	case <-e.ready:
	default:
		first = true
		close(e.ready)
	}
	e.tell(note{kind: loaded, first: first})
}

// fence waits until all that was wanted up to a generation is read.
type fence struct {
	generation int32
	reached    chan struct{}
}

// raise makes f wait for all that is wanted now.
func (e *engine) raise(f *fence) {
	f.generation = e.generation
	e.generation++
	e.fences = append(e.fences, f)
}

func (e *engine) isPendingSince(generation int32) bool {
	for g := range e.pending {
		if !isOlder(generation, g) {
			return true
		}
	}
	return false
}

// await waits until f is reached.
func (e *engine) await(ctx context.Context, f *fence) error {
	select {
	case <-f.reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return ErrClosed
	}
}

// sync returns when the cache has all that was written before: see CuratorCache.Sync.
func (e *engine) sync(ctx context.Context) error {
	for {
		f := &fence{reached: make(chan struct{})}
		err := e.agree(ctx, f)
		if err == nil {
			return e.await(ctx, f)
		}
		if waitqueue.IsOutage(err) {
			err = e.client.BlockUntilConnected(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// agree has a majority of the servers agree to a transaction that changes nothing, and raises f behind it. The answer
// comes behind all events of what was written before.
func (e *engine) agree(ctx context.Context, f *fence) error {
	if err := e.isRunning(); err != nil {
		return err
	}
	agreed := make(chan error, 1)
	check := e.client.TransactionOp().Check().ForPath(e.root.path)
	answered := func(_ context.Context, ev callbacks.Event) {
		if ev.Err != nil && !isVerdict(ev.Err) {
			agreed <- ev.Err
			return
		}
		e.inbox.put(func() { e.raise(f) })
		agreed <- nil
	}
	err := e.client.Transaction().InBackground(answered).WithUnhandledErrorListener(ignoreError).
		ForOperations(builders.OutOfFlight(ctx), check)
	if err != nil {
		return err
	}
	select {
	case err := <-agreed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return ErrClosed
	}
}

func ignoreError(string, error) {}

// isVerdict reports whether err is what a majority has agreed to say of the node.
func isVerdict(err error) bool { return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) }

// isRunning returns the reason why not.
func (e *engine) isRunning() error {
	e.life.Lock()
	defer e.life.Unlock()
	switch e.state {
	case latent:
		return ErrNotStarted
	case closed:
		return ErrClosed
	}
	return nil
}

// awaitReady returns when everything was read once.
func (e *engine) awaitReady(ctx context.Context) error {
	if err := e.isRunning(); err != nil {
		return err
	}
	select {
	case <-e.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return ErrClosed
	}
}
