// Package telemetry is what a client tells OpenTelemetry, a Java-style tracer driver and its log: spans, metrics and
// records, with their names, attributes, units and buckets. Each thing that is told has one place here, and the code
// that does the thing calls it at one place.
//
// Everything is off until somebody listens: with no provider, or a no-op one, every method returns at once, without an
// allocation and without a look at the clock. A nil *Telemetry is off.
//
// Spans may hold what is different each time, paths above all. Metrics hold values of closed sets and the names that
// the user has given, so that their series are bounded.
package telemetry
