package telemetry

import (
	"time"

	"github.com/gocurator/curator/internal/instrument"
)

// ConnectionWait is a wait of a foreground operation for a connection.
type ConnectionWait struct{ From, To time.Time }

// eventWaits adds an event for each wait to the span.
func (r *Record) eventWaits(waits []ConnectionWait) {
	for _, w := range waits {
		instrument.Event(r.span, "curator.connection.wait", w.From, waitDuration.Float64(w.To.Sub(w.From).Seconds()))
	}
}
