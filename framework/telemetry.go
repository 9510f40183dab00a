package framework

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
)

// WithTracerProvider sets the provider for the spans of the client and its recipes. The default, also for nil, is the
// global provider of OpenTelemetry, which the program may set later. The provider of package trace/noop turns spans
// off, at no cost.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) { c.telemetry.TracerProvider = p })
}

// WithMeterProvider sets the provider for the metrics of the client and its recipes. The default, also for nil, is the
// global provider of OpenTelemetry, which the program may set later. The provider of package metric/noop turns metrics
// off, at no cost.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) { c.telemetry.MeterProvider = p })
}

// WithName sets the name of the client in spans and metrics, so that two clients of a process are two series. The
// default is no name. Each name is a series of all metrics, so use few names.
func WithName(name string) Option { return option(func(c *config) { c.telemetry.Name = name }) }

// WithPropagator sends the trace context of a put with the items of a queue, for example with
// propagation.TraceContext{}. The context stands behind the bytes that Java writes and reads. By default there is no
// propagator: nodes hold the same bytes as Java's, and consumers read no trace context. The global propagator is not
// used.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return option(func(c *config) { c.telemetry.Propagator = p })
}

// WithPathFormatter sets the function that changes a path for spans and log records of retries; "" hides the path.
// Metrics have no paths in any case. format is called concurrently.
func WithPathFormatter(format func(path string) string) Option {
	return option(func(c *config) { c.telemetry.FormatPath = format })
}

// WithRequestSpans also makes a span for each request of an operation: those that create parents, those of retries, and
// those of the search for a protected node.
func WithRequestSpans() Option { return option(func(c *config) { c.telemetry.RequestSpans = true }) }

// WithWatchSpans makes a span around each call of a watcher's function, linked to the span in which the watch was set.
// Each call starts a new trace.
func WithWatchSpans() Option { return option(func(c *config) { c.telemetry.WatchSpans = true }) }

// WithSessionIDs puts the id of the session on the spans of operations.
func WithSessionIDs() Option { return option(func(c *config) { c.telemetry.SessionIDs = true }) }

// WithConsumerParent lets the work on an item of a queue continue the trace of its put, if the trace came with the
// item. This is the default.
func WithConsumerParent() Option {
	return option(func(c *config) { c.telemetry.DetachedConsumers = false })
}

// WithoutConsumerParent lets the work on an item of a queue begin a trace of its own, linked to the put.
func WithoutConsumerParent() Option {
	return option(func(c *config) { c.telemetry.DetachedConsumers = true })
}

// observed returns the configuration of the client's telemetry.
func (c *config) observed() telemetry.Config {
	t := c.telemetry
	t.Logger = c.logger
	if len(c.target.servers) == 1 {
		t.Server = c.target.servers[0]
	}
	return t
}
