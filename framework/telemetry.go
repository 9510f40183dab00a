package framework

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/gocurator/curator/internal/telemetry"
	"github.com/gocurator/curator/tracing"
)

// WithTracerProvider sets where the spans of the client and its recipes go; the default, and nil, is the global
// provider of OpenTelemetry, also one that the program sets later. That of package trace/noop turns spans off, at no
// cost.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) { c.telemetry.TracerProvider = p })
}

// WithMeterProvider sets where the metrics of the client and its recipes go; the default, and nil, is the global
// provider of OpenTelemetry, also one that the program sets later. That of package metric/noop turns metrics off, at no
// cost.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) { c.telemetry.MeterProvider = p })
}

// WithName sets the name of the client in spans and metrics, so that two clients of a process are two series. The
// default is no name. Each name is a series of all metrics, so use few names.
func WithName(name string) Option { return option(func(c *config) { c.telemetry.Name = name }) }

// WithPropagator has the trace context of a put travel with the items of a queue, behind the bytes that Java writes and
// reads: propagation.TraceContext{}, say. Without it, the default, nodes hold what Java's hold, byte for byte, and a
// consumer reads no trace context either. The global propagator is not used.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return option(func(c *config) { c.telemetry.Propagator = p })
}

// WithPathFormatter sets what spans and log records of retries hold in place of a path; nothing if it returns "".
// Metrics hold no paths anyway. It is called concurrently.
func WithPathFormatter(format func(path string) string) Option {
	return option(func(c *config) { c.telemetry.FormatPath = format })
}

// WithRequestSpans makes spans also of the requests that an operation consists of: those for its parents, of its
// retries, and of the search for a protected node.
func WithRequestSpans() Option { return option(func(c *config) { c.telemetry.RequestSpans = true }) }

// WithWatchSpans makes a span around each call of a watcher's function, linked to the span in which the watch was set.
// It begins a trace, as nobody's request has caused it.
func WithWatchSpans() Option { return option(func(c *config) { c.telemetry.WatchSpans = true }) }

// WithSessionIDs puts the id of the session on the spans of operations.
func WithSessionIDs() Option { return option(func(c *config) { c.telemetry.SessionIDs = true }) }

// WithConsumerParent says whether the work on an item of a queue goes on with the trace of its put, if that has
// travelled with it, which is the default, or begins a trace of its own. It is linked to the put in both cases.
func WithConsumerParent(on bool) Option {
	return option(func(c *config) { c.telemetry.DetachedConsumers = !on })
}

// WithTracerDriver reports operations and events to a Java-style driver, beside OpenTelemetry. In Java:
// CuratorZookeeperClient.setTracerDriver.
func WithTracerDriver(d tracing.Driver) Option {
	return option(func(c *config) { c.telemetry.Driver = d })
}

// WithTracerDriverFailures reports failed foreground operations to the driver too. Java does not.
func WithTracerDriverFailures() Option {
	return option(func(c *config) { c.telemetry.DriverFailures = true })
}

// observed returns how the client is to be observed.
func (c *config) observed() telemetry.Config {
	t := c.telemetry
	t.Logger = c.logger
	if len(c.target.servers) == 1 {
		t.Server = c.target.servers[0]
	}
	return t
}

// recorder is a client, or a struct that embeds one.
type recorder interface{ recorder() *telemetry.Telemetry }

func (c *Client) recorder() *telemetry.Telemetry {
	if c == nil {
		return nil
	}
	return c.core.telemetry
}

// telemetryOf returns the telemetry of a client, for the recipes: nil if it is none of this package.
func telemetryOf(client any) *telemetry.Telemetry {
	if r, ok := client.(recorder); ok {
		return r.recorder()
	}
	return nil
}
