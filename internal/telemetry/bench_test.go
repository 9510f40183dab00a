package telemetry_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/internal/telemetry"
)

// sampled returns tracers that take a part of the traces and send them nowhere.
func sampled(b *testing.B, part float64) *sdktrace.TracerProvider {
	b.Helper()
	p := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(part))), sdktrace.WithBatcher(nowhere{}))
	b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p
}

func measured() *sdkmetric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

func BenchmarkOperation(b *testing.B) {
	none, noMetrics := nooptrace.NewTracerProvider(), noopmetric.NewMeterProvider()
	cases := []struct {
		name string
		cfg  telemetry.Config
	}{
		{"off", telemetry.Config{}},
		{"not sampled", telemetry.Config{TracerProvider: sampled(b, 0), MeterProvider: noMetrics}},
		{"sampled", telemetry.Config{TracerProvider: sampled(b, 1), MeterProvider: noMetrics}},
		{"metrics", telemetry.Config{TracerProvider: none, MeterProvider: measured()}},
		{"metrics, 10 % sampled", telemetry.Config{TracerProvider: sampled(b, .1), MeterProvider: measured()}},
		{"metrics, all sampled", telemetry.Config{TracerProvider: sampled(b, 1), MeterProvider: measured()}},
	}
	what := telemetry.Operation{Name: "getData", Path: "/a"}
	for _, c := range cases {
		for _, background := range []bool{false, true} {
			name := c.name + "/foreground"
			if background {
				name = c.name + "/background"
			}
			b.Run(name, func(b *testing.B) {
				c.cfg.Server = "127.0.0.1:2181"
				t := telemetry.New(c.cfg)
				ctx := b.Context()
				b.ReportAllocs()
				for b.Loop() {
					at := time.Now()
					r := t.Begin(ctx, new(telemetry.Record), what, background, at)
					r.End(time.Now(), telemetry.Facts{
						Sent: at.Add(time.Microsecond), RequestSize: 100, ResponseSize: 100, Children: -1, Server: c.cfg.Server,
					})
				}
			})
		}
	}
}

// BenchmarkSDK measures the least cost of a span and one measurement: that of the SDK alone.
func BenchmarkSDK(b *testing.B) {
	attributes := []attribute.KeyValue{
		attribute.String("db.system.name", "zookeeper"), attribute.String("db.operation.name", "getData"),
		attribute.String("server.address", "127.0.0.1"), attribute.Int("server.port", 2181),
	}
	for name, part := range map[string]float64{"10 % sampled": .1, "all sampled": 1} {
		b.Run(name, func(b *testing.B) {
			start := []trace.SpanStartOption{
				trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...),
			}
			record := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
			tracer := sampled(b, part).Tracer("bench")
			duration, err := measured().Meter("bench").Float64Histogram("duration")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				ctx, span := tracer.Start(b.Context(), "getData", start...)
				duration.Record(ctx, .001, record...)
				span.End()
			}
		})
	}
}
