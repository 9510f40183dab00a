package builders

import (
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/internal/wire"
)

// watcherSet remembers the watchers that were set through a watcher-removing view of a client and have not ended. In
// Java: WatcherRemovalManager.
type watcherSet struct {
	mu        sync.Mutex
	n         int
	byWatcher map[setWatcher]map[string]rememberedWatch // by path
	byPath    map[setPath]map[setWatcher]struct{}
}

// setWatcher is a watcher as set in a namespace. An absolute one watches [ConfigNode].
type setWatcher struct {
	namespace string
	w         *callbacks.Watcher
	absolute  bool
}

type setPath struct{ namespace, path string }

type rememberedWatch struct {
	env        *environment
	persistent bool
}

// newWatcherSet returns an empty set.
func newWatcherSet() *watcherSet {
	s := new(watcherSet)
	s.clear()
	return s
}

// clear empties the set. mu is held, or no other goroutine has s yet.
func (s *watcherSet) clear() {
	s.n = 0
	s.byWatcher = make(map[setWatcher]map[string]rememberedWatch)
	s.byPath = make(map[setPath]map[setWatcher]struct{})
}

// len returns the number of remembered watchers. A watcher counts once for each of its paths.
func (s *watcherSet) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// takeAll removes all watchers from the set and returns them.
func (s *watcherSet) takeAll() map[setWatcher]map[string]rememberedWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.byWatcher
	s.clear()
	return all
}

func (s *watcherSet) add(env *environment, w *callbacks.Watcher, path string, absolute, persistent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := setWatcher{env.namespace.name, w, absolute}
	paths := s.byWatcher[set]
	if paths == nil {
		paths = make(map[string]rememberedWatch)
		s.byWatcher[set] = paths
	}
	watch, known := paths[path]
	paths[path] = rememberedWatch{env, watch.persistent || persistent}
	if known {
		return
	}
	s.n++
	at := setPath{set.namespace, path}
	if s.byPath[at] == nil {
		s.byPath[at] = make(map[setWatcher]struct{})
	}
	s.byPath[at][set] = struct{}{}
}

// forget removes a watcher of a path. mu is held.
func (s *watcherSet) forget(set setWatcher, path string) {
	paths := s.byWatcher[set]
	if _, known := paths[path]; !known {
		return
	}
	s.n--
	if delete(paths, path); len(paths) == 0 {
		delete(s.byWatcher, set)
	}
	at := setPath{set.namespace, path}
	if delete(s.byPath[at], set); len(s.byPath[at]) == 0 {
		delete(s.byPath, at)
	}
}

// isSet reports whether the watcher has a watch of any kind on path.
func (s setWatcher) isSet(env *environment, path string) bool {
	conn := env.Executor.Conn()
	return conn != nil && conn.Watches(wire.WatchAny, env.namespace.full(path), env.bind(s.w, s.absolute))
}

// removed removes w, or every watcher of path if w is nil, where it has no watch any more. An absolute one that ends
// with a path of the client gets an event: see notified.
func (s *watcherSet) removed(env *environment, w *callbacks.Watcher, path string, absolute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w != nil {
		s.forgetEnded(env, setWatcher{env.namespace.name, w, absolute}, path)
		return
	}
	for set := range s.byPath[setPath{env.namespace.name, path}] {
		if !set.absolute {
			s.forgetEnded(env, set, path)
		}
	}
}

// forgetEnded forgets a watcher without a watch on path. The only watch of an absolute one is of one event.
func (s *watcherSet) forgetEnded(env *environment, set setWatcher, path string) {
	if set.absolute || !set.isSet(env, path) {
		s.forget(set, path)
	}
}

// notified removes a watcher whose last watch ends with ev.
func (s *watcherSet) notified(set setWatcher, ev zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev.Type == zk.EventSession {
		if ev.State == zk.StateExpired || ev.State == zk.StateAuthFailed {
			for path := range s.byWatcher[set] {
				s.forget(set, path)
			}
		}
		return
	}
	watch, known := s.byWatcher[set][ev.Path]
	if known && ev.Type == zk.EventNotWatching {
		watch.persistent = false
		s.byWatcher[set][ev.Path] = watch
	}
	if known && !watch.persistent {
		s.forgetEnded(watch.env, set, ev.Path)
	}
}
