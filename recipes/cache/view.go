package cache

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/gocurator/curator/internal/errtext"
)

// get returns a node, nil if it is not in the cache.
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

// err returns why a node could not be read.
func (e *engine) err(path string) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if f := e.failed[e.nodes[path]]; f != nil {
		return f.err
	}
	if path == e.root.path {
		return e.watchErr
	}
	return nil
}

// children returns the children of a node by name.
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

// snapshot returns the nodes of one moment, sorted by path.
func (e *engine) snapshot() []*ChildData {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.sorted()
}

// all yields the nodes of the moment at which it is called.
func (e *engine) all() iter.Seq2[string, *ChildData] {
	return func(yield func(string, *ChildData) bool) {
		for _, node := range e.snapshot() {
			if !yield(node.Path, node) {
				return
			}
		}
	}
}

// sorted is called with e.mu held.
func (e *engine) sorted() []*ChildData {
	nodes := slices.Collect(e.settings.storage.All())
	slices.SortFunc(nodes, func(a, b *ChildData) int { return strings.Compare(a.Path, b.Path) })
	return nodes
}

// follow returns a mailbox with what is in the cache, and all that changes from then on. It is closed with the cache.
func (e *engine) follow() *mailbox[Event] {
	events := newMailbox[Event]()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		events.close()
		return events
	}
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

// rebuild reads everything again, and waits for it.
func (e *engine) rebuild(ctx context.Context) error { return e.reread(ctx, e.root.path, e.wantAll) }

// rebuildNode reads a node again, and waits for it.
func (e *engine) rebuildNode(ctx context.Context, path string) error {
	if path != e.root.path && !isBelow(path, e.root.path) {
		return fmt.Errorf("cache: rebuild %s: not below %s", path, e.root.path)
	}
	return e.reread(ctx, path, func() {
		if n := e.node(path); n != nil {
			e.want(n, data, e.generation)
		}
	})
}

// reread has nodes wanted, and waits until they are read.
func (e *engine) reread(ctx context.Context, path string, want func()) error {
	err := e.isRunning()
	if err == nil {
		f := &fence{reached: make(chan struct{})}
		e.inbox.put(func() {
			want()
			e.raise(f)
		})
		err = e.await(ctx, f)
	}
	if err != nil {
		return errtext.Wrap(err, "cache", "rebuild %s", path)
	}
	return nil
}

// clearAndRefresh forgets everything without an event, and reads it again.
func (e *engine) clearAndRefresh() error {
	if err := e.isRunning(); err != nil {
		return err
	}
	e.inbox.put(func() {
		e.settings.storage.Clear()
		e.obs.Entries(e.ctx, -e.liveNodes())
		for _, n := range e.nodes {
			n.live, n.mzxid, n.listed = false, 0, false
		}
		e.wantAll()
	})
	return nil
}
