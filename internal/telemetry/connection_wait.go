package telemetry

import "time"

// ConnectionWait is a time for which an operation of the foreground has waited for a connection.
type ConnectionWait struct{ From, To time.Time }

// eventWaits adds an event for each wait to the span.
func (r *Record) eventWaits(waits []ConnectionWait) {
	for _, w := range waits {
		event(r.span, "curator.connection.wait", w.From, waitDuration.Float64(w.To.Sub(w.From).Seconds()))
	}
}
