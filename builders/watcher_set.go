package builders

import (
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/wire"
)

// WatcherSet remembers the watchers that were set through a watcher-removing view of a client and have not ended. In
// Java: WatcherRemovalManager.
type WatcherSet struct {
	mu      sync.Mutex
	entries map[watcherEntry]bool // persistent?
}

// watcherEntry is a watcher set for a path of a client.
type watcherEntry struct {
	env      *Env
	w        *callbacks.Watcher
	path     string
	absolute bool // see RemoveWatches
}

// isSet reports whether the watcher has a watch of any kind.
func (e watcherEntry) isSet() bool {
	conn := e.env.Executor.Conn()
	return conn != nil && conn.Watches(wire.WatchAny, e.env.Namespace.full(e.path), e.env.bind(e.w, e.absolute))
}

// NewWatcherSet returns an empty set.
func NewWatcherSet() *WatcherSet { return &WatcherSet{entries: make(map[watcherEntry]bool)} }

// Len returns how many watchers are remembered, each for each of its paths.
func (s *WatcherSet) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// RemoveAll forgets all of them and has start remove each.
func (s *WatcherSet) RemoveAll(start func(r RemoveWatches, path string)) {
	s.mu.Lock()
	entries := s.entries
	s.entries = make(map[watcherEntry]bool)
	s.mu.Unlock()
	for e := range entries {
		r := NewWatches(e.env).Remove(e.w).Guaranteed().Quietly()
		r.absolute = e.absolute
		start(r, e.path)
	}
}

func (s *WatcherSet) add(env *Env, w *callbacks.Watcher, path string, absolute, persistent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := watcherEntry{env, w, path, absolute}
	s.entries[e] = s.entries[e] || persistent
}

// removed forgets the watchers of path that have no watch any more.
func (s *WatcherSet) removed(env *Env, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.entries {
		if e.env == env && e.path == path && !e.isSet() {
			delete(s.entries, e)
		}
	}
}

// notified forgets what ends with ev: not the watcher of which another watch is left.
func (s *WatcherSet) notified(env *Env, w *callbacks.Watcher, absolute bool, ev zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev.Type == zk.EventSession {
		if ev.State == zk.StateExpired || ev.State == zk.StateAuthFailed {
			for e := range s.entries {
				if e.env == env && e.w == w {
					delete(s.entries, e)
				}
			}
		}
		return
	}
	e := watcherEntry{env, w, ev.Path, absolute}
	if persistent, known := s.entries[e]; known && !persistent && !e.isSet() {
		delete(s.entries, e)
	}
}
