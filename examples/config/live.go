package main

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
)

// Live is a value that follows a node. It keeps the last value that has decoded, also while there is no connection.
type Live[T any] struct {
	cache *cache.CuratorCache
	typed *cache.Typed[T]
	value atomic.Pointer[T]
}

// follow returns the live value of the node at path.
func follow[T any](
	client *framework.Client, path string, decode func(path string, data []byte) (T, error),
) (*Live[T], error) {
	c := cache.NewCuratorCache(client, path, cache.WithSingleNode())
	l := &Live[T]{cache: c, typed: cache.NewTyped(c, decode)}
	return l, c.Start()
}

// Value returns the last value that has decoded. It is false before the first, and after the node was deleted.
func (l *Live[T]) Value() (value T, ok bool) {
	if p := l.value.Load(); p != nil {
		return *p, true
	}
	return value, false
}

// Changes yields each change of the value, the present one first. Value returns what it yields, or the value before if
// that does not decode.
func (l *Live[T]) Changes(ctx context.Context) iter.Seq[cache.TypedEvent[T]] {
	return func(yield func(cache.TypedEvent[T]) bool) {
		for ev := range l.typed.Changes(ctx) {
			switch {
			case ev.Type == cache.NodeDeleted:
				l.value.Store(nil)
			case ev.Type == cache.Initialized:
				if _, ok := l.Value(); ok {
					continue // it was yielded
				}
			case ev.Err == nil:
				l.value.Store(&ev.Value)
			}
			if !yield(ev) {
				return
			}
		}
	}
}

// Close ends the cache.
func (l *Live[T]) Close() error { return l.cache.Close() }
