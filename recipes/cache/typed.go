package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync"

	"github.com/gocurator/curator/internal/errtext"
)

// Typed is a view of a [CuratorCache] whose nodes hold values. A node that does not decode has an error, and no value;
// the others are not concerned. All methods are safe for concurrent use.
type Typed[T any] struct {
	cache  *CuratorCache
	decode func(path string, data []byte) (T, error)

	mu      sync.Mutex
	decoded map[string]decodedNode[T]
}

type decodedNode[T any] struct {
	node  *ChildData
	value T
	err   error
}

// TypedEvent is a change of a node in the cache of a [Typed].
type TypedEvent[T any] struct {
	Event
	Value T     // of New
	Err   error // why New has no value
}

// JSON decodes a node as encoding/json does.
func JSON[T any](_ string, data []byte) (value T, err error) {
	err = json.Unmarshal(data, &value)
	return value, err
}

// NewTyped returns a view of c, which has its own life. decode is called once for each state of a node that is asked
// for; it may be called concurrently.
func NewTyped[T any](c *CuratorCache, decode func(path string, data []byte) (T, error)) *Typed[T] {
	t := &Typed[T]{cache: c, decode: decode, decoded: make(map[string]decodedNode[T])}
	c.Listenable().AddListener(ForDeletes(func(_ context.Context, node *ChildData) { t.forget(node.Path) }))
	return t
}

// Get returns the value of a node; false if the node is not in the cache or has no value: see [Typed.Err].
func (t *Typed[T]) Get(path string) (value T, ok bool) {
	node, ok := t.cache.Get(path)
	if !ok {
		return value, false
	}
	d := t.of(node)
	return d.value, d.err == nil
}

// Err returns why a node has no value: it could not be read, or does not decode. It returns nil if the node has a
// value, and if nothing is known of it.
func (t *Typed[T]) Err(path string) error {
	if err := t.cache.Err(path); err != nil {
		return err
	}
	if node, ok := t.cache.Get(path); ok {
		return t.of(node).err
	}
	return nil
}

// All yields the nodes that have values as [CuratorCache.All] does.
func (t *Typed[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for path, node := range t.cache.All() {
			if d := t.of(node); d.err == nil && !yield(path, d.value) {
				return
			}
		}
	}
}

// Changes yields what [CuratorCache.Changes] does, with values.
func (t *Typed[T]) Changes(ctx context.Context) iter.Seq[TypedEvent[T]] {
	return func(yield func(TypedEvent[T]) bool) {
		for ev := range t.cache.Changes(ctx) {
			out := TypedEvent[T]{Event: ev}
			if ev.New != nil {
				d := t.of(ev.New)
				out.Value, out.Err = d.value, d.err
			}
			if !yield(out) {
				return
			}
		}
	}
}

// of returns what a node decodes to.
func (t *Typed[T]) of(node *ChildData) decodedNode[T] {
	t.mu.Lock()
	d, ok := t.decoded[node.Path]
	t.mu.Unlock()
	if ok && d.node == node {
		return d
	}
	d = decodedNode[T]{node: node}
	if d.value, d.err = t.decoding(node); d.err != nil {
		d.err = errtext.Wrap(d.err, "cache", "decode %s", node.Path)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if current, ok := t.cache.Get(node.Path); ok && current == node { // when it goes, forget comes behind that
		t.decoded[node.Path] = d
	}
	return d
}

// decoding makes a panic an error of the node.
func (t *Typed[T]) decoding(node *ChildData) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %s", errtext.Panic(p))
		}
	}()
	return t.decode(node.Path, node.Data)
}

func (t *Typed[T]) forget(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.decoded, path)
}
