// Package telemetry reports what a client does to OpenTelemetry, a Java-style tracer driver and its log: spans, metrics
// and records, with their names, attributes, units and buckets. Each of them has one place here, and one caller.
//
// Everything is off without a provider, or with a no-op one: every method returns at once, without an allocation and
// without reading the clock. A nil *Telemetry is off.
//
// Spans may hold what is different each time, paths above all. Metrics hold values of closed sets and the names that
// the user has given, so that their series are bounded.
package telemetry
