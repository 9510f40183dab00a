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

// err returns the error of the last read of a node: see CuratorCache.Err.
func (e *engine) err(path string) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.failed[e.nodes[path]].err
}

// children returns the children of a node, keyed by name.
func (e *engine) children(path string) map[string]*ChildData {
	e.mu.RLock()
	defer e.mu.RUnlock()
	n := e.nodes[path]
	if n == nil || !n.live {
		return nil
	}
	out := make(map[string]*ChildData, len(n.kids()))
	for _, kid := range n.kids() {
		if kid.live {
			out[kid.path[strings.LastIndexByte(kid.path, '/')+1:]] = e.settings.storage.Get(kid.path)
		}
	}
	return out
}

// snapshot returns all nodes at one moment, sorted by path.
func (e *engine) snapshot() []*ChildData {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.sorted()
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

// sorted returns all nodes, sorted by path. The caller holds e.mu.
func (e *engine) sorted() []*ChildData {
	nodes := slices.Collect(e.settings.storage.All())
	slices.SortFunc(nodes, func(a, b *ChildData) int { return strings.Compare(a.Path, b.Path) })
	return nodes
}

// follow returns a mailbox with the contents of the cache, which also receives all later changes.
func (e *engine) follow() *mailbox[Event] {
	events := newMailbox[Event]()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, node := range e.sorted() {
		events.put(Event{Type: NodeCreated, New: node, ready: true})
	}
	events.put(Event{Type: Initialized, ready: true})
	e.followers[events] = struct{}{}
	return events
}

func (e *engine) unfollow(events *mailbox[Event]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.followers, events)
}

// rebuild reads all nodes again and waits for the answers.
func (e *engine) rebuild(ctx context.Context) error { return e.reread(ctx, e.root.path, e.wantAll) }

// rebuildNode reads a node again and waits for the answer.
func (e *engine) rebuildNode(ctx context.Context, path string) error {
	if err := zkpath.Validate(path, false); err != nil {
		return errtext.Wrap(err, "cache", "rebuild")
	}
	if path != e.root.path && !isBelow(path, e.root.path) {
		return fmt.Errorf("cache: rebuild %s: not below %s", path, e.root.path)
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
		e.inbox.put(func() {
			want()
			e.addFence(reached)
		})
		err = e.await(ctx, reached)
	}
	if err != nil {
		return errtext.Wrap(err, "cache", "rebuild %s", path)
	}
	return nil
}

// clearAndRefresh empties the cache without an event and reads everything again.
func (e *engine) clearAndRefresh() error {
	if err := e.checkRunning(); err != nil {
		return err
	}
	e.inbox.put(func() {
		e.settings.storage.Clear()
		e.obs.Entries(e.ctx, -e.entries)
		e.entries = 0
		for _, n := range e.nodes {
			n.live, n.mzxid, n.listed = false, 0, false
		}
		e.wantAll()
	})
	return nil
}
