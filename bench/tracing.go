package main

import (
	"context"
	"time"

	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/retry"
)

// The same library with telemetry off, or with the SDK of OpenTelemetry, which takes one
// trace of ten and all metrics. As it comes it reports to the global providers, of which there are none here.
const (
	unobserved = "telemetry off"
	observed   = "SDK, 10 % sampled"
)

// unnoticed bounds the cost of telemetry: nothing that shows while nobody listens, and a tenth with the SDK, where
// there is a server to wait for.
var (
	unnoticed = []bound{atLeast(0.98, rate).of(unobserved), atMost(1.01, allocs).of(unobserved)}
	little    = []bound{atLeast(0.9, rate).of(unobserved)}
)

// tracingWork measures the cost of telemetry. The budget bounds the first of two entries.
var tracingWork = section{
	rows: []row{
		{
			name: "background getData, not configured", server: nullServer, show: throughput, often: 4, budget: unnoticed,
			entries: against(work(getDataBg), curator, unobserved, observed),
		},
		{
			name: "getData, one goroutine, not configured", server: nullServer, show: latency, often: 4, budget: unnoticed,
			entries: against(work(getDataSync), curator, unobserved, observed),
		},
		{
			name: "mutex acquire and release, not configured", server: realServer, show: latency, often: 4, budget: unnoticed,
			entries: against(work(lockAlone), curator, unobserved),
		},
		{
			name: "background create, traced", server: realServer, show: throughput, often: 4, budget: little,
			entries: against(work(createBackground), observed, unobserved),
		},
		{
			name: "background getData, traced", server: realServer, show: throughput, often: 4, budget: little,
			entries: against(work(getDataBg), observed, unobserved),
		},
		{
			name: "create, one goroutine, traced", server: realServer, show: latency, often: 4, budget: little,
			entries: against(work(createSync), observed, unobserved),
		},
		{
			name: "queue, 100 items on their way, traced", server: realServer, show: latency, often: 4, budget: little,
			entries: against(work(queueing).window(100), observed, unobserved),
		},
		{
			name: "mutex acquire and release, traced", server: realServer, show: latency, often: 4, budget: little,
			entries: against(work(lockAlone), observed, unobserved),
		},
	},
}

// openUnobserved returns a function that opens a client without telemetry.
func openUnobserved(policy retry.Policy) func(connect string) (client, error) {
	return func(connect string) (client, error) {
		return asClient(startCurator(connect, policy,
			framework.WithTracerProvider(nooptrace.NewTracerProvider()),
			framework.WithMeterProvider(noopmetric.NewMeterProvider())))
	}
}

// openObserved returns a function that opens a client that reports to the SDK.
func openObserved(policy retry.Policy) func(connect string) (client, error) {
	return func(connect string) (client, error) {
		sampler := sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.1))
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(nowhere{}))
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		c, err := startCurator(connect, policy, framework.WithTracerProvider(tracers), framework.WithMeterProvider(meters))
		if err != nil {
			return nil, err
		}
		c.after = func() error { return tracers.Shutdown(context.Background()) } // there is nothing to send
		return c, nil
	}
}

// The retry policies of those who are measured: the second is that of those whose failures are.
var (
	stubborn  = retry.ExponentialBackoff(100*time.Millisecond, 5)
	impatient = retry.NTimes(0, 0)
)

// nowhere takes spans.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }
