package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
)

// Depth is the size and the age of a queue at a moment.
type Depth struct {
	Nodes int
	Age   time.Duration // of the first of them
}

// depthReader reads the depth of a queue. It reports false if that is not known.
type depthReader struct {
	q    *Queue
	read func(ctx context.Context) (Depth, bool)
}

// depthLimit is how long a collection of metrics waits for the depths of queues.
const depthLimit = time.Second

// ObserveDepth has the gauges show what read returns, until the returned function is called.
func (q *Queue) ObserveDepth(read func(ctx context.Context) (Depth, bool)) (stop func()) {
	if q.t == nil {
		return func() {}
	}
	r := &depthReader{q, read}
	q.t.mu.Lock()
	q.t.depths[r] = struct{}{}
	q.t.mu.Unlock()
	q.t.meter() // there from the beginning
	return func() {
		q.t.mu.Lock()
		defer q.t.mu.Unlock()
		delete(q.t.depths, r)
	}
}

// declareDepths makes the gauges of queues.
func (t *Telemetry) declareDepths(m metric.Meter) (metric.Registration, error) {
	depth, err := m.Int64ObservableGauge("curator.queue.depth", metric.WithUnit("{node}"),
		metric.WithDescription("Nodes in a queue, those that are being consumed included."))
	age, err2 := m.Float64ObservableGauge("curator.queue.oldest.age", metric.WithUnit("s"),
		metric.WithDescription("Time since the first put of the first item in a queue, or since it was due."))
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		for name, d := range t.readDepths(ctx) {
			with := metric.WithAttributes(t.base(named(name)...)...)
			o.ObserveInt64(depth, int64(d.Nodes), with)
			o.ObserveFloat64(age, d.Age.Seconds(), with)
		}
		return nil
	}, depth, age)
}

// readDepths reads all queues at a time. It returns the depths by name: those of several queues of a name, as of
// shards, are added up.
func (t *Telemetry) readDepths(ctx context.Context) map[string]Depth {
	t.mu.RLock()
	readers := make(map[string]*depthReader, len(t.depths)) // by path
	for r := range t.depths {
		readers[r.q.path] = r
	}
	t.mu.RUnlock()
	if len(readers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, depthLimit)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	depths := make(map[string]Depth)
	for _, r := range readers {
		wg.Go(func() {
			d, ok := r.read(ctx)
			if !ok {
				return
			}
			name := t.seriesOf(r.q.recipe, r.q.name).name
			mu.Lock()
			defer mu.Unlock()
			sum := depths[name]
			depths[name] = Depth{sum.Nodes + d.Nodes, max(sum.Age, d.Age)}
		})
	}
	wg.Wait()
	return depths
}

// registrations are several as one.
type registrations struct {
	embedded.Registration
	all []metric.Registration
}

func (r registrations) Unregister() error {
	var err error
	for _, one := range r.all {
		if one != nil {
			err = errors.Join(err, one.Unregister())
		}
	}
	return err
}
