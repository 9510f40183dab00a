// Package listeners has the set of listeners that a client and a recipe keep and notify, and the context of a listener.
package listeners

import (
	"context"
	"slices"
	"sync"

	"github.com/gocurator/curator/callbacks"
)

// Set is a set of listeners. The zero value is empty and ready; all methods are safe for concurrent use.
type Set[E any] struct {
	mu   sync.Mutex
	list []*callbacks.Listener[E]
}

// Add adds fn, as callbacks.Listener says.
func (l *Set[E]) Add(fn callbacks.Listener[E]) (remove func()) {
	e := &fn // functions do not compare: the address is the identity
	l.mu.Lock()
	l.list = append(slices.Clip(l.list), e)
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.list, e); i >= 0 {
			l.list = slices.Delete(slices.Clone(l.list), i, i+1) // a Notify under way keeps its list
		}
	}
}

// Len returns how many listeners there are.
func (l *Set[E]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// Clear removes all listeners.
func (l *Set[E]) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = nil
}

// Notify calls all listeners, each through call, which may recover from panics; a nil call calls them plainly. A
// listener that another one has removed meanwhile is left out. If a listener ends the goroutine with runtime.Goexit,
// the others are called before it ends.
func (l *Set[E]) Notify(ctx context.Context, ev E, call func(fn func())) {
	l.mu.Lock()
	list := l.list
	l.mu.Unlock()
	l.notify(ctx, ev, call, list)
}

// notify is Notify for some of the listeners.
func (l *Set[E]) notify(ctx context.Context, ev E, call func(fn func()), list []*callbacks.Listener[E]) {
	i := 0
	defer func() {
		if i < len(list) { // this listener has not returned
			l.notify(ctx, ev, call, list[i+1:])
		}
	}()
	for ; i < len(list); i++ {
		e := list[i]
		if !l.has(e) {
			continue
		}
		if call == nil {
			(*e)(ctx, ev)
		} else {
			call(func() { (*e)(ctx, ev) })
		}
	}
}

func (l *Set[E]) has(e *callbacks.Listener[E]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.list, e)
}
