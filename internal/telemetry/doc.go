// Package telemetry reports the operations and the connections of a client to OpenTelemetry, to a Java-style tracer
// driver and to the log. What recipes report is in package report.
//
// Everything is off without a provider, or with a no-op one: every method returns at once, without an allocation and
// without reading the clock. A nil *Telemetry is off.
//
// Spans may contain values without a bound, such as paths. Metrics have values of closed sets and the names that the
// program has given, so that their series are bounded.
package telemetry
