package telemetry

import (
	"context"
	"errors"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/jute"
)

// Closed is the ErrorType of an error of a closed client or recipe.
const Closed = "CLOSED"

// ErrorType returns a short name of err from a closed set: Java's name of the code ("NONODE", "CONNECTIONLOSS"),
// "CLOSED", "canceled", "deadline_exceeded" or "_OTHER".
func ErrorType(err error) string {
	name, _ := classify(err)
	return name
}

// classify returns the ErrorType of err, and whether err is an answer of the server.
func classify(err error) (name string, byServer bool) {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled", false
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded", false
	}
	if code, ok := jute.CodeOf(err); ok {
		var unknown jute.UnknownCode
		if errors.As(err, &unknown) { // a server may send any number
			return other, true
		}
		switch code {
		case jute.CodeClosing:
			return Closed, false
		case jute.CodeConnectionLoss, jute.CodeSessionExpired, jute.CodeOperationTimeout:
			return code.String(), false
		}
		return code.String(), true
	}
	if errors.Is(err, errtext.ErrClosed) {
		return Closed, false
	}
	return other, false
}

// description returns the text of err for the status of a span, or "" if the [ErrorType] of err says the same.
func description(err error) string {
	switch err.(type) { //nolint:errorlint // whether it wraps another
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		return err.Error()
	}
	if ErrorType(err) == other {
		return err.Error()
	}
	return ""
}
