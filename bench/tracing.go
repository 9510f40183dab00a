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

// The same library without telemetry, and with the SDK of OpenTelemetry, which samples a part of the traces and records
// all metrics. A client without either uses the global providers, and here there are none.
const (
	telemetryOff = "telemetry off"
	sampledTenth = "SDK, 10 % sampled"
	sampledAll   = "SDK, all sampled"
	handTenth    = "SDK by hand, 10 % sampled"
	handAll      = "SDK by hand, all sampled"
)

// The budgets of telemetry: no cost without providers, and a tenth of the rate with the SDK if the server is the limit.
var (
	free  = []bound{atLeast(0.98, rate).of(telemetryOff), atMost(1.01, allocs).of(telemetryOff)}
	tenth = []bound{atLeast(0.9, rate).of(telemetryOff)}
)

// tracingWork measures the cost of telemetry. The budget is that of the first entry.
var tracingWork = section{
	rows: []row{
		{
			name: "background getData, not configured", server: nullServer, show: throughput, often: 4, budget: free,
			entries: against(work(getDataBg), curator, telemetryOff, sampledTenth),
		},
		{
			name: "getData, one goroutine, not configured", server: nullServer, show: latency, often: 4, budget: free,
			entries: against(work(getDataSync), curator, telemetryOff, sampledTenth),
		},
		{
			name: "mutex acquire and release, not configured", server: realServer, show: latency, often: 4, budget: free,
			entries: against(work(lockAlone), curator, telemetryOff),
		},
		{
			name: "background create, traced", server: realServer, show: throughput, often: 4, budget: tenth,
			entries: against(work(createBackground), sampledTenth, telemetryOff),
		},
		{
			name: "background getData, traced", server: realServer, show: throughput, often: 4, budget: tenth,
			entries: against(work(getDataBg), sampledTenth, telemetryOff),
		},
		{
			name: "background getData, 10 % traced", server: nullServer, show: throughput, often: 4,
			budget:  []bound{atMost(2, cpu).of(telemetryOff), atMost(1.25, cpu).of(handTenth)},
			entries: against(work(getDataBg), sampledTenth, telemetryOff, handTenth),
		},
		{
			name: "background getData, all traced", server: nullServer, show: throughput, often: 4,
			budget:  []bound{atMost(5, cpu).of(telemetryOff), atMost(1.25, cpu).of(handAll)},
			entries: against(work(getDataBg), sampledAll, telemetryOff, handAll),
		},
		{
			name: "create, one goroutine, traced", server: realServer, show: latency, often: 4, budget: tenth,
			entries: against(work(createSync), sampledTenth, telemetryOff),
		},
		{
			name: "queue, 100 items on their way, traced", server: realServer, show: latency, often: 4, budget: tenth,
			entries: against(work(queueing).window(100), sampledTenth, telemetryOff),
		},
		{
			name: "mutex acquire and release, traced", server: realServer, show: latency, often: 4,
			entries: against(work(lockAlone), sampledTenth, telemetryOff),
			budget:  append([]bound{atMost(1.08, p50).of(telemetryOff)}, tenth...),
		},
	},
}

// openWithoutTelemetry returns an open function for clients without telemetry.
func openWithoutTelemetry(policy retry.Policy) func(connect string) (client, error) {
	return func(connect string) (client, error) {
		return asClient(startCurator(connect, policy,
			framework.WithTracerProvider(nooptrace.NewTracerProvider()),
			framework.WithMeterProvider(noopmetric.NewMeterProvider())))
	}
}

// openWithSDK returns an open function for clients with the SDK, which samples this part of the traces.
func openWithSDK(policy retry.Policy, part float64) func(connect string) (client, error) {
	return func(connect string) (client, error) {
		tracers, meters := newSDK(part)
		c, err := startCurator(connect, policy, framework.WithTracerProvider(tracers), framework.WithMeterProvider(meters))
		if err != nil {
			return nil, err
		}
		c.after = func() error { return tracers.Shutdown(context.Background()) } // there is nothing to send
		return c, nil
	}
}

// newSDK returns providers of the SDK that sample this part of the traces.
func newSDK(part float64) (*sdktrace.TracerProvider, *sdkmetric.MeterProvider) {
	sampler := sdktrace.ParentBased(sdktrace.TraceIDRatioBased(part))
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(nowhere{})),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// The retry policies of the contenders. The second is for rows that measure failures.
var (
	stubborn  = retry.ExponentialBackoff(100*time.Millisecond, 5)
	impatient = retry.NTimes(0, 0)
)

// nowhere drops all spans.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }
