package main

import (
	"context"
	"errors"
	"io"
	"os"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// observation is where traces and metrics go: to a collector, or into memory, to be shown at the end.
type observation struct {
	tracers *sdktrace.TracerProvider
	meters  *sdkmetric.MeterProvider
	show    func(ctx context.Context) error
}

// endpoint is the environment variable that the exporters read, too.
const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

// exporting returns an observation that goes to a collector. Only the build tag otlp sets it: the exporters have to
// compile gRPC, which takes minutes.
var exporting func(ctx context.Context, who *resource.Resource) (*observation, error)

func newObservation(ctx context.Context, out io.Writer, traces int) (*observation, error) {
	// What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say comes last, and holds.
	who, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("curator-pipeline")), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	if os.Getenv(endpoint) == "" {
		return inMemory(out, traces, who), nil
	}
	if exporting == nil {
		return nil, errors.New(endpoint + " is set, and this program is built without OTLP: " +
			"go run -tags otlp ./examples/pipeline")
	}
	return exporting(ctx, who)
}

func inMemory(out io.Writer, traces int, who *resource.Resource) *observation {
	spans := tracetest.NewInMemoryExporter()
	reader := sdkmetric.NewManualReader()
	o := &observation{
		tracers: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithResource(who)),
		meters:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(who)),
	}
	o.show = func(ctx context.Context) error {
		var metrics metricdata.ResourceMetrics
		err := reader.Collect(ctx, &metrics)
		showTraces(out, spans.GetSpans().Snapshots(), traces)
		showMetrics(out, metrics)
		return err
	}
	return o
}

// close shows what was seen, or sends what is left of it.
func (o *observation) close(ctx context.Context) error {
	return errors.Join(o.show(ctx), o.tracers.Shutdown(ctx), o.meters.Shutdown(ctx))
}
