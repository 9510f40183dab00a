// Package instrument adapts OpenTelemetry to the library: a [Scope] has the tracer and the meter of a client, and each
// part of the library declares its instruments as a [Kit].
//
// A Scope without a provider, or with a no-op one, is off: every method returns at once, without an allocation and
// without reading the clock. A nil *Scope is off. A panic of a provider loses only the value of that call.
package instrument
