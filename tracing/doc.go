// Package tracing has the interfaces by which Java Curator reports what it does, for teams that have their dashboards
// on them: [Driver] and [AdvancedDriver], with Java's names of operations and events. See [WithDriver].
//
// New programs use OpenTelemetry: framework.WithTracerProvider and framework.WithMeterProvider.
package tracing
