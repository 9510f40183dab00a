package telemetry

// Of returns the telemetry of a client of package framework, of a view of one, and of a struct that embeds one. It is
// nil for every other client, so that nothing is recorded. Package framework sets it.
var Of = func(client any) *Telemetry { return nil }
