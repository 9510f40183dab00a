package telemetry_test

import (
	"testing"
	"time"

	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/internal/telemetry"
)

func BenchmarkOperation(b *testing.B) {
	sampled := func(s sdktrace.Sampler) *sdktrace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithSampler(s))
	}
	none, noMetrics := nooptrace.NewTracerProvider(), noopmetric.NewMeterProvider()
	cases := []struct {
		name string
		cfg  telemetry.Config
	}{
		{"off", telemetry.Config{}},
		{"noop", telemetry.Config{TracerProvider: none, MeterProvider: noMetrics}},
		{"not sampled", telemetry.Config{TracerProvider: sampled(sdktrace.NeverSample()), MeterProvider: noMetrics}},
		{"sampled", telemetry.Config{TracerProvider: sampled(sdktrace.AlwaysSample()), MeterProvider: noMetrics}},
		{"metrics", telemetry.Config{
			TracerProvider: none, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		}},
	}
	what := telemetry.Operation{Name: "create", Namespace: "orders", Path: "/a", Mode: "PERSISTENT"}
	for _, c := range cases {
		for _, background := range []bool{false, true} {
			name := c.name + "/foreground"
			if background {
				name = c.name + "/background"
			}
			b.Run(name, func(b *testing.B) {
				t := telemetry.New(c.cfg)
				sent := time.Now()
				ctx := b.Context()
				b.ReportAllocs()
				for b.Loop() {
					r := t.Begin(ctx, what, background, time.Now())
					r.Sent(sent)
					r.End(time.Now(), telemetry.Facts{RequestSize: 100, ResponseSize: 100, Children: -1, Server: "127.0.0.1:2181"})
				}
			})
		}
	}
}
