package locks

import (
	"errors"

	"github.com/gocurator/curator/internal/telemetry"
)

// waitOutcome returns telemetry's word for the end of a wait for a lock.
func waitOutcome(err error) string {
	switch {
	case errors.Is(err, ErrNotAcquired):
		return telemetry.Timeout
	case errors.Is(err, ErrLockLost):
		return telemetry.Lost
	}
	return telemetry.Outcome(err, telemetry.Acquired)
}
