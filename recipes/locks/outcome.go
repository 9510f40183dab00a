package locks

import (
	"errors"

	"github.com/gocurator/curator/internal/report"
)

// waitOutcome returns telemetry's word for the end of a wait for a lock.
func waitOutcome(err error) string {
	switch {
	case errors.Is(err, ErrNotAcquired):
		return report.Timeout
	case errors.Is(err, ErrLockLost):
		return report.Lost
	}
	return report.Outcome(err, report.Acquired)
}
