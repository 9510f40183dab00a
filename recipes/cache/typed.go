package cache

import (
	"context"
	"iter"
	"sync"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/usercode"
)

// Typed is a view of a [CuratorCache] that decodes each node to a value. A node that does not decode has an error and
// no value: see [Typed.Err]. The other nodes are not affected. All methods are safe for concurrent use.
type Typed[T any] struct {
	cache *CuratorCache
	codec codec.Codec[T]

	decoded sync.Map // *decodedNode[T] by path
}

// decodedNode is the result of decoding one state of a node.
type decodedNode[T any] struct {
	node  *ChildData
	value T
	err   error
}

// TypedEvent is an [Event] with the decoded value of New.
type TypedEvent[T any] struct {
	Event
	Value T     // the value of New; not meaningful if New is nil or Err is not nil
	Err   error // why New does not decode, else nil
}

// NewTyped returns a view of c, which the caller starts and closes. The view calls values.Decode when a value is
// read, perhaps concurrently, and keeps the result while the node has the same state. A panic of Decode is an error of
// the node.
func NewTyped[T any](c *CuratorCache, values codec.Codec[T]) *Typed[T] {
	t := &Typed[T]{cache: c, codec: values}
	c.AddListener(ForDeletes(func(_ context.Context, node *ChildData) { t.decoded.Delete(node.Path) }))
	return t
}

// Get returns the value of the node at path. ok is false if the node is not in the cache or has no value: see
// [Typed.Err].
func (t *Typed[T]) Get(path string) (value T, ok bool) {
	node, ok := t.cache.Get(path)
	if !ok {
		return value, false
	}
	d := t.decodedOf(node)
	return d.value, d.err == nil
}

// Err returns the reason why a node has no value: it could not be read, or it does not decode. It returns nil if the
// node has a value, or if the cache has not read it.
func (t *Typed[T]) Err(path string) error {
	if err := t.cache.Err(path); err != nil {
		return err
	}
	if node, ok := t.cache.Get(path); ok {
		return t.decodedOf(node).err
	}
	return nil
}

// All returns an iterator over the nodes that have values, as [CuratorCache.All] does.
func (t *Typed[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for path, node := range t.cache.All() {
			if d := t.decodedOf(node); d.err == nil && !yield(path, d.value) {
				return
			}
		}
	}
}

// Changes returns the iterator of [CuratorCache.Changes], with the decoded values.
func (t *Typed[T]) Changes(ctx context.Context) iter.Seq[TypedEvent[T]] {
	return func(yield func(TypedEvent[T]) bool) {
		for ev := range t.cache.Changes(ctx) {
			out := TypedEvent[T]{Event: ev}
			if ev.New != nil {
				d := t.decodedOf(ev.New)
				out.Value, out.Err = d.value, d.err
			}
			if !yield(out) {
				return
			}
		}
	}
}

// decodedOf returns the decoded form of node, from the map if possible.
func (t *Typed[T]) decodedOf(node *ChildData) *decodedNode[T] {
	if kept, ok := t.decoded.Load(node.Path); ok && isOneWrite(&kept.(*decodedNode[T]).node.Stat, &node.Stat) {
		return kept.(*decodedNode[T])
	}
	d := &decodedNode[T]{node: node}
	if d.value, d.err = t.safeDecode(node); d.err != nil {
		d.err = errtext.Wrap(d.err, "cache", "decode %s", node.Path)
	}
	isCurrent := func() bool {
		current, ok := t.cache.Get(node.Path)
		return ok && isOneWrite(&current.Stat, &node.Stat)
	}
	if isCurrent() {
		t.decoded.Store(node.Path, d)
	}
	if !isCurrent() { // the listener for deletions may have been called before
		t.decoded.CompareAndDelete(node.Path, d)
	}
	return d
}

// safeDecode calls Decode and returns a panic as an error.
func (t *Typed[T]) safeDecode(node *ChildData) (value T, err error) {
	defer usercode.Catch("the codec", &err)
	return t.codec.Decode(node.Data)
}
