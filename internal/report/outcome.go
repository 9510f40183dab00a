package report

import (
	"context"
	"errors"

	"github.com/gocurator/curator/internal/telemetry"
)

// The outcomes of waits, of holds and of claims.
const (
	Acquired    = "acquired"
	Elected     = "elected"
	Passed      = "passed"
	Timeout     = "timeout"
	Canceled    = "canceled"
	Lost        = "lost"
	Failed      = "error"
	Released    = "released"
	EndedClosed = "closed"
	Interrupted = "interrupted"
	Returned    = "returned"
	Taken       = "taken"
)

// Outcome returns the outcome of a wait that ended with err, or wanted if err is nil.
func Outcome(err error, wanted string) string {
	switch {
	case err == nil:
		return wanted
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Canceled
	case telemetry.ErrorType(err) == telemetry.Closed:
		return EndedClosed
	}
	return Failed
}
