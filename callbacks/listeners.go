package callbacks

import (
	"context"
	"slices"
	"sync"
)

// Listener takes events of type E.
type Listener[E any] func(ctx context.Context, ev E)

// Listeners is a set of listeners. The zero value is empty and ready; all methods are safe for concurrent use. In
// Java: Listenable.
type Listeners[E any] struct {
	mu   sync.Mutex
	list []*Listener[E]
}

// AddListener registers fn and returns a func that removes it. Listeners are called one at a time, in the order in
// which they were added. remove may be called from inside fn, and more than once; when it returns, no further call
// of fn begins, except one that is already under way. In Java: addListener and removeListener.
func (l *Listeners[E]) AddListener(fn Listener[E]) (remove func()) {
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
func (l *Listeners[E]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// Clear removes all listeners.
func (l *Listeners[E]) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = nil
}

// Notify calls all listeners, each through call, which may recover from panics; a nil call calls them plainly. A
// listener that another one has removed meanwhile is left out.
func (l *Listeners[E]) Notify(ctx context.Context, ev E, call func(fn func())) {
	l.mu.Lock()
	list := l.list
	l.mu.Unlock()
	for _, e := range list {
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

func (l *Listeners[E]) has(e *Listener[E]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.list, e)
}
