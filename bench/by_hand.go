package main

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/callbacks"
	"github.com/gocurator/curator/retry"
)

// byHand is a client without telemetry whose program calls the SDK itself, once for each span and each measurement of
// the library. Nothing that records as much costs less.
type byHand struct {
	curatorClient
	tracer   trace.Tracer
	duration otelmetric.Float64Histogram
	queued   otelmetric.Float64Histogram
}

// openByHand returns an open function for such clients. The SDK samples this part of the traces.
func openByHand(policy retry.Policy, part float64) func(connect string) (client, error) {
	return func(connect string) (client, error) {
		tracers, meters := newSDK(part)
		meter := meters.Meter("bench")
		h := byHand{tracer: tracers.Tracer("bench")}
		var err error
		if h.duration, err = meter.Float64Histogram("db.client.operation.duration"); err != nil {
			return nil, err
		}
		if h.queued, err = meter.Float64Histogram("curator.background.queue.duration"); err != nil {
			return nil, err
		}
		opened, err := openWithoutTelemetry(policy)(connect)
		if err != nil {
			return nil, err
		}
		h.curatorClient = opened.(curatorClient)
		h.after = func() error { return tracers.Shutdown(context.Background()) }
		return h, nil
	}
}

// The attributes of an operation. A span has two more when it ends.
var (
	operationAttributes = []attribute.KeyValue{
		attribute.String("db.system.name", "zookeeper"),
		attribute.String("db.operation.name", "getData"),
		attribute.String("server.address", "127.0.0.1"),
		attribute.Int("server.port", 2181),
	}
	queueAttributes = operationAttributes[:2]
)

func (h byHand) getMany(_ context.Context, window int, path string, stop *atomic.Bool) tally {
	w := newFlight(window)
	get := h.GetData()
	starting := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(operationAttributes...),
	}
	operation := []otelmetric.RecordOption{otelmetric.WithAttributeSet(attribute.NewSet(operationAttributes...))}
	queue := []otelmetric.RecordOption{otelmetric.WithAttributeSet(attribute.NewSet(queueAttributes...))}
	return w.keep(stop, func() error {
		start := time.Now()
		ctx, span := h.tracer.Start(unending, "getData", starting...)         //nolint:spancheck // in the callback
		return get.InBackground(func(_ context.Context, ev callbacks.Event) { //nolint:spancheck // as above
			took := time.Since(start).Seconds()
			h.duration.Record(ctx, took, operation...)
			h.queued.Record(ctx, took, queue...)
			if span.IsRecording() {
				span.SetAttributes(attribute.String("curator.path", ev.Path), attribute.Int("db.response.size", len(ev.Data)))
			}
			span.End()
			w.landed(ctx, ev)
		}).ForPath(ctx, path)
	})
}
