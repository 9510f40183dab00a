package cache

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/zkpath"
)

// base has the methods of all caches.
type base struct{ engine *engine }

// Start begins to fill the cache and does not wait. It needs no connection. It returns an error if the path is invalid,
// [ErrStarted] on a second call, [ErrClosed] after Close, and framework.ErrClosed when the client is closed. In Java:
// start.
func (b *base) Start() error { return b.engine.start(func() {}) }

// startAndBuild starts the cache and waits for its first load. first runs before any listener is called.
func (b *base) startAndBuild(ctx context.Context, first func()) error {
	if err := b.engine.start(first); err != nil {
		return err
	}
	return wrap(b.engine.awaitReady(ctx), "build", b.engine.root.path)
}

// Close stops the cache and always returns nil. No listener call begins after it returns. It ends the context of a call
// that is under way and does not wait for it: a listener may call Close. The watches are removed in the background. A
// second Close does nothing. In Java: close.
func (b *base) Close() error {
	b.engine.close()
	return nil
}

// Err returns the error of the last read of a node, or of the list of its children. It returns nil if both succeeded,
// or if the cache has not read the node. For the root of the cache it also returns the reason why the watch cannot be
// set, and framework.ErrNoChroot if the chroot does not exist. The cache retries with growing pauses. Until a retry
// succeeds, the cache may have an old state of the node.
func (b *base) Err(path string) error {
	e := b.engine
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.failed[e.nodes[path]].err
}

// Rebuild reads all nodes again and waits for the answers. The listeners receive an event for each change. Use it after
// the client has got a permission to read back: changes of a node without that permission have no event. ctx bounds the
// wait. Without a connection Rebuild keeps waiting. It returns the error of ctx, framework.ErrNoChroot if the chroot
// does not exist, [ErrNotStarted] or [ErrClosed]. In Java: rebuild of NodeCache and PathChildrenCache, which sends no
// events.
func (b *base) Rebuild(ctx context.Context) error {
	return b.engine.reread(ctx, b.engine.root.path, b.engine.wantAll)
}

// wrap adds the action of the cache to err. It returns nil if err is nil.
func wrap(err error, did, path string) error {
	if err == nil {
		return nil
	}
	return errtext.Wrap(err, "cache", "%s %s", did, path)
}

// get returns the node at path, or nil if it is not in the cache.
func (e *engine) get(path string) *ChildData {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.settings.storage.Get(path)
}

func (e *engine) size() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.settings.storage.Len()
}

// children returns the children of a node, keyed by name.
func (e *engine) children(path string) map[string]*ChildData {
	kids, ok := e.kidsOf(path)
	if !ok {
		return nil
	}
	out := make(map[string]*ChildData, len(kids))
	for _, kid := range kids {
		out[zkpath.Node(kid.Path)] = kid
	}
	return out
}

// kidsOf returns the children of a node. ok is false if the node is not in the cache.
func (e *engine) kidsOf(path string) (kids []*ChildData, ok bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	n, storage := e.nodes[path], e.settings.storage
	if n == nil || storage.Get(path) == nil { // a live node is not in the storage after Close
		return nil, false
	}
	kids = make([]*ChildData, 0, len(n.kids()))
	for _, kid := range n.kids() {
		if data := storage.Get(kid.path); data != nil {
			kids = append(kids, data)
		}
	}
	return kids, true
}

// snapshot returns all nodes at one moment, sorted by path.
func (e *engine) snapshot() []*ChildData {
	e.mu.RLock()
	nodes := slices.Collect(e.settings.storage.All())
	e.mu.RUnlock()
	sortByPath(nodes) // without the lock, as that can take a second: see TestSnapshotIsSortedWithoutTheLock
	return nodes
}

func sortByPath(nodes []*ChildData) {
	slices.SortFunc(nodes, func(a, b *ChildData) int { return strings.Compare(a.Path, b.Path) })
}

// all returns an iterator over a snapshot that it takes when the iteration begins.
func (e *engine) all() iter.Seq2[string, *ChildData] {
	return func(yield func(string, *ChildData) bool) {
		for _, node := range e.snapshot() {
			if !yield(node.Path, node) {
				return
			}
		}
	}
}

// follow returns all nodes at one moment, sorted by path, and a mailbox that receives all later changes.
func (e *engine) follow() ([]*ChildData, *mailbox[Event]) {
	events := newMailbox[Event]()
	e.mu.Lock()
	nodes := slices.Collect(e.settings.storage.All())
	e.followers[events] = struct{}{}
	e.mu.Unlock()
	sortByPath(nodes)
	return nodes, events
}

func (e *engine) unfollow(events *mailbox[Event]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.followers, events)
}

// rebuildNode reads a child of the root again and waits for the answer.
func (e *engine) rebuildNode(ctx context.Context, path string) error {
	if err := zkpath.Validate(path, false); err != nil {
		return errtext.Wrap(err, "cache", "rebuild")
	}
	if path == e.root.path || zkpath.Parent(path) != e.root.path {
		return fmt.Errorf("cache: rebuild %s: not a child of %s", path, e.root.path)
	}
	return e.reread(ctx, path, func() {
		if n := e.node(path); n != nil {
			e.want(n, data, e.epoch())
		}
	})
}

// reread calls want on the loop and waits until everything that is wanted then is read.
func (e *engine) reread(ctx context.Context, path string, want func()) error {
	err := e.checkRunning()
	if err == nil {
		reached := make(chan error)
		e.post(want, func() { e.addFence(reached) })
		if err = e.await(ctx, reached); err == nil {
			err = e.noChroot()
		}
	}
	return wrap(err, "rebuild", path)
}

// clearAndRefresh empties the cache without an event and reads everything again.
func (e *engine) clearAndRefresh() error {
	if err := e.checkRunning(); err != nil {
		return err
	}
	e.post(func() {
		e.settings.storage.Clear()
		e.obs.Entries(e.ctx, -e.entries)
		e.entries = 0
		for _, n := range e.nodes {
			n.live = false
		}
		e.wantAll()
	})
	return nil
}
