package report

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gocurator/curator/internal/instrument"
)

// Depth is the size and the age of a queue at one moment.
type Depth struct {
	Nodes int
	Age   time.Duration // age of the first node
}

// depths has the queues of a client whose depth is measured.
type depths struct {
	mu      sync.Mutex
	readers map[*depthReader]struct{}
}

// depthReader reads the depth of a queue. read returns false if the depth is unknown.
type depthReader struct {
	q    *Queue
	read func(ctx context.Context) (Depth, bool)
}

// depthLimit bounds the time for which a collection of metrics waits for the depths of queues.
const depthLimit = time.Second

// ObserveDepth makes the gauges show the results of read, until stop is called.
func (q *Queue) ObserveDepth(read func(ctx context.Context) (Depth, bool)) (stop func()) {
	if q.t == nil {
		return func() {}
	}
	all, r := instrument.Shared[depths](q.t.Scope()), &depthReader{q, read}
	all.mu.Lock()
	if all.readers == nil {
		all.readers = make(map[*depthReader]struct{})
	}
	all.readers[r] = struct{}{}
	all.mu.Unlock()
	q.t.Scope().Measures() // declares the gauges before the first item
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.readers, r)
	}
}

// declareDepths declares the gauges of queues.
func declareDepths(d *instrument.Declarer) {
	g := d.Gauges()
	depth := g.Size("curator.queue.depth", "{node}", "Nodes in a queue, those that are being consumed included.")
	age := g.Age("curator.queue.oldest.age",
		"Time since the first put of the first item in a queue, or since it was due.")
	scope := d.Scope()
	all := instrument.Shared[depths](scope)
	g.Observe(func(ctx context.Context, o metric.Observer) {
		for name, d := range all.read(ctx) {
			with := metric.WithAttributes(scope.Base(destinationOf(name)...)...)
			o.ObserveInt64(depth, int64(d.Nodes), with)
			o.ObserveFloat64(age, d.Age.Seconds(), with)
		}
	})
}

// read reads all queues at the same time. It returns the depths by name. The depths of queues with the same name, such
// as shards, are added up.
func (all *depths) read(ctx context.Context) map[string]Depth {
	all.mu.Lock()
	readers := make(map[string]*depthReader, len(all.readers)) // by path
	for r := range all.readers {
		readers[r.q.path] = r
	}
	all.mu.Unlock()
	if len(readers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, depthLimit)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	sums := make(map[string]Depth)
	for _, r := range readers {
		wg.Go(func() {
			d, ok := r.read(ctx)
			if !ok {
				return
			}
			name := queueSeriesOf(r.q.t, r.q.name).name
			mu.Lock()
			defer mu.Unlock()
			sum := sums[name]
			sums[name] = Depth{sum.Nodes + d.Nodes, max(sum.Age, d.Age)}
		})
	}
	wg.Wait()
	return sums
}
