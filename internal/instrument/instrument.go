package instrument

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"

	"github.com/gocurator/curator/internal/usercode"
)

// meter has the instruments of a Scope with a meter provider.
type meter struct {
	kits   []any // the T of each Kit, by its index
	gauges []metric.Registration
}

// Declarer declares the instruments of a [Scope]. An instrument that the provider refuses does nothing.
type Declarer struct {
	scope  *Scope
	meter  metric.Meter
	errs   []error
	gauges []metric.Registration
}

// Scope returns the scope of the instruments.
func (d *Declarer) Scope() *Scope { return d.scope }

// Histogram declares a histogram of times, in seconds.
func (d *Declarer) Histogram(name, description string, buckets []float64) Histogram {
	h, err := d.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets...))
	if d.failed(err) {
		h = noopmetric.Float64Histogram{}
	}
	return Histogram{h, d.scope}
}

// Counter declares a counter.
func (d *Declarer) Counter(name, unit, description string) Counter {
	c, err := d.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if d.failed(err) {
		c = noopmetric.Int64Counter{}
	}
	return Counter{c, d.scope}
}

// UpDownCounter declares a counter that also counts down.
func (d *Declarer) UpDownCounter(name, unit, description string) UpDownCounter {
	c, err := d.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if d.failed(err) {
		c = noopmetric.Int64UpDownCounter{}
	}
	return UpDownCounter{c, d.scope}
}

func (d *Declarer) failed(err error) bool {
	if err != nil {
		d.errs = append(d.errs, err)
	}
	return err != nil
}

// Gauges declares gauges. If the provider refuses one, it leaves all of them out.
func (d *Declarer) Gauges() *Gauges { return &Gauges{d: d} }

// Gauges are gauges with one callback.
type Gauges struct {
	d    *Declarer
	errs []error
	all  []metric.Observable
}

// Sum declares a gauge whose values are added up over several clients of a meter provider.
func (g *Gauges) Sum(name, unit, description string) metric.Int64Observable {
	gauge, err := g.d.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	g.errs, g.all = append(g.errs, err), append(g.all, gauge)
	return gauge
}

// Size declares a gauge of a number that is not added up.
func (g *Gauges) Size(name, unit, description string) metric.Int64Observable {
	gauge, err := g.d.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	g.errs, g.all = append(g.errs, err), append(g.all, gauge)
	return gauge
}

// Age declares a gauge of a time, in seconds.
func (g *Gauges) Age(name, description string) metric.Float64Observable {
	gauge, err := g.d.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	g.errs, g.all = append(g.errs, err), append(g.all, gauge)
	return gauge
}

// Observe registers the callback that observes the gauges.
func (g *Gauges) Observe(observe func(ctx context.Context, o metric.Observer)) {
	err := errors.Join(g.errs...)
	if err == nil {
		var registered metric.Registration
		registered, err = g.d.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
			observe(ctx, o)
			return nil
		}, g.all...)
		if err == nil && registered != nil {
			g.d.gauges = append(g.d.gauges, registered)
		}
	}
	g.d.failed(err)
}

// Histogram records times. A panic of the provider loses one value.
type Histogram struct {
	histogram metric.Float64Histogram
	scope     *Scope
}

// Record records a time with the attributes of a set.
func (h Histogram) Record(ctx context.Context, seconds float64, set Set) {
	defer usercode.Report(inMetrics, h.scope.cfg.Panicked)
	if h.histogram.Enabled(ctx) {
		h.histogram.Record(ctx, seconds, set.record...)
	}
}

// Counter counts up. A panic of the provider loses one value.
type Counter struct {
	counter metric.Int64Counter
	scope   *Scope
}

// Add adds n with the attributes of a set.
func (c Counter) Add(ctx context.Context, n int, set Set) {
	defer usercode.Report(inMetrics, c.scope.cfg.Panicked)
	if c.counter.Enabled(ctx) {
		c.counter.Add(ctx, int64(n), set.add...)
	}
}

// AddUnreported is Add that does not report a panic of the provider. It counts reports, which would follow one another
// for ever.
func (c Counter) AddUnreported(ctx context.Context, n int, set Set) {
	defer usercode.Catch(inMetrics, nil)
	if c.counter.Enabled(ctx) {
		c.counter.Add(ctx, int64(n), set.add...)
	}
}

// UpDownCounter counts up and down. A panic of the provider loses one value.
type UpDownCounter struct {
	counter metric.Int64UpDownCounter
	scope   *Scope
}

// Add adds n with the attributes of a set.
func (c UpDownCounter) Add(ctx context.Context, n int, set Set) {
	defer usercode.Report(inMetrics, c.scope.cfg.Panicked)
	if c.counter.Enabled(ctx) {
		c.counter.Add(ctx, int64(n), set.add...)
	}
}
