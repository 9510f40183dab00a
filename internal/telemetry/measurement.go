package telemetry

import (
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// measurement is a set of attributes in the forms that instruments take, made once and used again: a measurement with
// it allocates nothing.
type measurement struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newMeasurement(attributes ...attribute.KeyValue) measurement {
	set := metric.WithAttributeSet(attribute.NewSet(slices.Clone(attributes)...)) // which sorts them in place
	return measurement{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
}

// measurements are those of one thing, by how it ended. The ways to end are a closed set.
type measurements struct {
	of func(end string) []attribute.KeyValue

	mu    sync.RWMutex
	byEnd map[string]measurement
}

func newMeasurements(of func(end string) []attribute.KeyValue) *measurements {
	return &measurements{of: of, byEnd: make(map[string]measurement)}
}

func (m *measurements) get(end string) measurement {
	m.mu.RLock()
	known, ok := m.byEnd[end]
	m.mu.RUnlock()
	if ok {
		return known
	}
	fresh := newMeasurement(m.of(end)...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byEnd[end] = fresh
	return fresh
}
