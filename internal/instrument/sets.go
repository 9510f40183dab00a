package instrument

import (
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Set is a set of attributes, as an option of instruments. A measurement with a Set allocates nothing.
type Set struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// NewSet returns a set of attributes.
func NewSet(attributes ...attribute.KeyValue) Set {
	set := metric.WithAttributeSet(attribute.NewSet(slices.Clone(attributes)...)) // NewSet sorts its arguments in place
	return Set{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
}

// Sets has one Set for each value of K, such as an outcome. K has few values.
type Sets[K comparable] struct {
	attributes func(key K) []attribute.KeyValue

	mu    sync.RWMutex
	byKey map[K]Set
}

// NewSets returns sets whose attributes depend on their key.
func NewSets[K comparable](attributes func(key K) []attribute.KeyValue) *Sets[K] {
	return &Sets[K]{attributes: attributes, byKey: make(map[K]Set)}
}

// Get returns the set of a key.
func (s *Sets[K]) Get(key K) Set {
	s.mu.RLock()
	known, ok := s.byKey[key]
	s.mu.RUnlock()
	if ok {
		return known
	}
	fresh := NewSet(s.attributes(key)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byKey[key] = fresh
	return fresh
}

// Names bounds the number of names that the program gives, because each name is a series of its own. Only the first
// maxNames count.
type Names struct{ known []string }

const maxNames = 100

// Bounded returns name, or [Other] if too many other names came before it. The caller guards n.
func (n *Names) Bounded(name string) string {
	switch {
	case name == "" || slices.Contains(n.known, name):
		return name
	case len(n.known) >= maxNames:
		return Other
	}
	n.known = append(n.known, name)
	return name
}
