// Package report records what the recipes do, as spans and metrics. Recipes do not see OpenTelemetry: a recipe makes a
// [Lock], an [Election], a [Barrier], a [Queue], a [Cache] or [Nodes] with the telemetry of its client, and calls its
// methods. Each of these files declares the instruments of its recipes.
//
// Metrics have values of closed sets and the names that the program has given, so that their series are bounded.
package report
