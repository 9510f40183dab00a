package wire

import (
	"iter"
	"slices"
)

// watcherSet is a set of watchers in the order in which they were added. Adding and removing one takes the same time
// however many there are. A nil set is empty.
type watcherSet struct {
	list    []Watcher       // the watchers in order; nil marks a removed one
	index   map[Watcher]int // the index of each watcher in list; nil while they are few
	n       int             // number of watchers
	leaving int             // number of watchers for which a removal of all watches of the path is on the wire
}

const fewWatchers = 8

// find returns where w is in the list, or -1.
func (s *watcherSet) find(w Watcher) int {
	if s.index == nil {
		return slices.Index(s.list, w)
	}
	if i, ok := s.index[w]; ok {
		return i
	}
	return -1
}

func (s *watcherSet) has(w Watcher) bool { return w != nil && s.find(w) >= 0 }

// stays reports whether s has a watcher whose watches are not being removed.
func (s *watcherSet) stays() bool { return s != nil && s.n > s.leaving }

// add adds w. It returns false if w was in s before.
func (s *watcherSet) add(w Watcher) bool {
	if s.find(w) >= 0 {
		return false
	}
	s.list = append(s.list, w)
	s.n++
	switch {
	case s.index != nil:
		s.index[w] = len(s.list) - 1
	case len(s.list) > fewWatchers:
		s.reindex()
	}
	return true
}

// remove removes w and reports whether it was in s.
func (s *watcherSet) remove(w Watcher) bool {
	i := s.find(w)
	if i < 0 {
		return false
	}
	s.n--
	if s.index == nil {
		s.list = slices.Delete(s.list, i, i+1)
		return true
	}
	s.list[i] = nil
	delete(s.index, w)
	if s.n < len(s.list)/2 {
		s.list = slices.DeleteFunc(s.list, func(w Watcher) bool { return w == nil })
		s.reindex()
	}
	return true
}

func (s *watcherSet) reindex() {
	s.index = nil
	if len(s.list) <= fewWatchers {
		s.list = slices.Clip(slices.Clone(s.list))
		return
	}
	s.index = make(map[Watcher]int, len(s.list))
	for i, w := range s.list {
		s.index[w] = i
	}
}

// all yields the watchers in order.
func (s *watcherSet) all() iter.Seq[Watcher] {
	return func(yield func(Watcher) bool) {
		if s == nil {
			return
		}
		for _, w := range s.list {
			if w != nil && !yield(w) {
				return
			}
		}
	}
}
