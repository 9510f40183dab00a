// Package observe records the spans and the metrics of a test, and prints them so that the test can compare them.
package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// Observer records what its providers get.
type Observer struct {
	Tracers *sdktrace.TracerProvider
	Meters  *sdkmetric.MeterProvider

	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

// New returns the observer of a test, of all spans or those that the sampler takes.
func New(tb testing.TB, sampler ...sdktrace.Sampler) *Observer {
	tb.Helper()
	o := &Observer{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	options := []sdktrace.TracerProviderOption{sdktrace.WithSpanProcessor(o.spans)}
	for _, s := range sampler {
		options = append(options, sdktrace.WithSampler(s))
	}
	o.Tracers = sdktrace.NewTracerProvider(options...)
	o.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context())
		_ = o.Tracers.Shutdown(ctx)
		_ = o.Meters.Shutdown(ctx)
	})
	return o
}

// Start begins a span of the test, as the request that causes what is tested.
func (o *Observer) Start(ctx context.Context, name string) (context.Context, trace.Span) {
	return o.Tracers.Tracer("test").Start(ctx, name) //nolint:spancheck // the test ends it
}

// Processor returns the processor that records the spans, for a provider of the test's own.
func (o *Observer) Processor() sdktrace.SpanProcessor { return o.spans }

// Spans returns the spans that have ended, in the order of their beginnings.
func (o *Observer) Spans() []sdktrace.ReadOnlySpan {
	spans := slices.Clone(o.spans.Ended())
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return spans
}

// Named returns the spans of a name.
func (o *Observer) Named(name string) []sdktrace.ReadOnlySpan {
	return slices.DeleteFunc(o.Spans(), func(s sdktrace.ReadOnlySpan) bool { return s.Name() != name })
}

// Tree prints the spans, each below its parent, in the order of their beginnings: its name, its kind unless that is
// internal, its error, the attributes of these keys, and its links.
func (o *Observer) Tree(keys ...attribute.Key) string {
	spans := o.Spans()
	names := make(map[trace.SpanID]string)
	for _, s := range spans {
		names[s.SpanContext().SpanID()] = s.Name()
	}
	var b strings.Builder
	var print func(s sdktrace.ReadOnlySpan, depth int)
	print = func(s sdktrace.ReadOnlySpan, depth int) {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth), line(s, names, keys))
		for _, child := range spans {
			if child.Parent().SpanID() == s.SpanContext().SpanID() {
				print(child, depth+1)
			}
		}
	}
	for _, s := range spans {
		if _, known := names[s.Parent().SpanID()]; !known {
			print(s, 0)
		}
	}
	return b.String()
}

func line(s sdktrace.ReadOnlySpan, names map[trace.SpanID]string, keys []attribute.Key) string {
	parts := []string{s.Name()}
	if kind := s.SpanKind(); kind != trace.SpanKindInternal {
		parts = append(parts, strings.ToUpper(kind.String()))
	}
	for _, a := range s.Attributes() {
		if slices.Contains(keys, a.Key) {
			parts = append(parts, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
	}
	if s.Status().Code == codes.Error {
		parts = append(parts, "error="+Attribute(s, "error.type").String())
	}
	for _, l := range s.Links() {
		name, known := names[l.SpanContext.SpanID()]
		if !known {
			name = "?"
		}
		parts = append(parts, "-> "+name)
	}
	return strings.Join(parts, " ")
}

// Attribute returns the attribute of a span, the zero Value if it has none.
func Attribute(s sdktrace.ReadOnlySpan, key attribute.Key) attribute.Value {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

// Has reports whether a span has an attribute.
func Has(s sdktrace.ReadOnlySpan, key string) bool { return slices.Contains(Keys(s), key) }

// Keys returns the keys of the attributes of a span, in alphabetical order.
func Keys(s sdktrace.ReadOnlySpan) []string {
	var keys []string
	for _, a := range s.Attributes() {
		keys = append(keys, string(a.Key))
	}
	slices.Sort(keys)
	return keys
}

// Events prints the attributes of the events of a span of a name.
func Events(s sdktrace.ReadOnlySpan, name string) (events []string) {
	for _, e := range s.Events() {
		if e.Name == name {
			set := attribute.NewSet(e.Attributes...)
			events = append(events, set.Encoded(attribute.DefaultEncoder()))
		}
	}
	return events
}

// Metrics returns the metrics so far, by name.
func (o *Observer) Metrics(tb testing.TB) map[string]metricdata.Metrics {
	tb.Helper()
	var data metricdata.ResourceMetrics
	if err := o.reader.Collect(tb.Context(), &data); err != nil {
		tb.Fatal(err)
	}
	byName := make(map[string]metricdata.Metrics)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// Point is one series of a metric: its attributes, and its sum, its value in whole units if it is a gauge, or the count
// of a histogram.
type Point struct {
	Attributes attribute.Set
	Value      int64
	Bounds     []float64
}

// Points returns the series of a metric.
func Points(m metricdata.Metrics) (points []Point) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			points = append(points, Point{Attributes: p.Attributes, Value: p.Value})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			points = append(points, Point{Attributes: p.Attributes, Value: p.Value})
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			points = append(points, Point{Attributes: p.Attributes, Value: int64(p.Value)})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			points = append(points, Point{Attributes: p.Attributes, Value: int64(p.Count), Bounds: p.Bounds})
		}
	}
	return points
}

// Exemplars returns the traces of the exemplars of a histogram.
func (o *Observer) Exemplars(tb testing.TB, name string) (traces []trace.TraceID) {
	tb.Helper()
	data, _ := o.Metrics(tb)[name].Data.(metricdata.Histogram[float64])
	for _, p := range data.DataPoints {
		for _, e := range p.Exemplars {
			var id trace.TraceID
			copy(id[:], e.TraceID)
			traces = append(traces, id)
		}
	}
	return traces
}

// Banned are the keys that no metric may have: their values are without bounds.
var Banned = []attribute.Key{
	"zookeeper.path", "zookeeper.session.id", "zookeeper.request.size", "zookeeper.response.size",
	"zookeeper.response.children", "messaging.message.id", "network.peer.address", "network.peer.port",
	"curator.lock.position", "curator.retry.count", "curator.background.queue_time", "db.operation.batch.size",
}

// WantBounded fails the test if a metric has a key whose values are without bounds.
func (o *Observer) WantBounded(tb testing.TB) {
	tb.Helper()
	for name, m := range o.Metrics(tb) {
		for _, p := range Points(m) {
			for _, key := range Banned {
				if p.Attributes.HasValue(key) {
					tb.Errorf("%s has %s", name, key)
				}
			}
		}
	}
}

// Values prints the series of a metric, one a line in alphabetical order, without the attribute that all have. It
// leaves out counters that have counted nothing.
func (o *Observer) Values(tb testing.TB, name string) string {
	tb.Helper()
	var lines []string
	m := o.Metrics(tb)[name]
	sum, ok := m.Data.(metricdata.Sum[int64])
	counts := ok && sum.IsMonotonic
	for _, p := range Points(m) {
		if counts && p.Value == 0 {
			continue
		}
		rest, _ := p.Attributes.Filter(func(kv attribute.KeyValue) bool { return kv.Key != "db.system.name" })
		lines = append(lines, fmt.Sprintf("%s %d\n", rest.Encoded(attribute.DefaultEncoder()), p.Value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
