package builders

import (
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
)

// WatcherSet remembers the watchers that were set through a watcher-removing view of a client and have not ended. In
// Java: WatcherRemovalManager.
type WatcherSet struct {
	mu      sync.Mutex
	entries map[watcherEntry]bool // persistent?
}

// watcherEntry is a watcher set for a path of a client.
type watcherEntry struct {
	env  *Env
	w    *callbacks.Watcher
	path string
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
		start(NewWatches(e.env).Remove(e.w).Guaranteed().Quietly(), e.path)
	}
}

func (s *WatcherSet) add(env *Env, w *callbacks.Watcher, path string, persistent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := watcherEntry{env, w, path}
	s.entries[e] = s.entries[e] || persistent
}

func (s *WatcherSet) remove(env *Env, w *callbacks.Watcher, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, watcherEntry{env, w, path})
}

// notified forgets what ends with ev.
func (s *WatcherSet) notified(env *Env, w *callbacks.Watcher, ev zk.Event) {
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
	if e := (watcherEntry{env, w, ev.Path}); !s.entries[e] {
		delete(s.entries, e)
	}
}
