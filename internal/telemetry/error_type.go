package telemetry

import (
	"context"
	"errors"

	"github.com/gocurator/curator/internal/jute"
)

// errorClosed is the ErrorType of an error that says that a client or a recipe is closed.
const errorClosed = "CLOSED"

// ErrorType returns a short name of err from a closed set: Java's name of the code ("NONODE", "CONNECTIONLOSS"),
// "CLOSED", "canceled", "deadline_exceeded" or "_OTHER".
func ErrorType(err error) string {
	name, _ := classify(err)
	return name
}

// classify is ErrorType that also reports whether the server has said so.
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
			return errorClosed, false
		case jute.CodeConnectionLoss, jute.CodeSessionExpired, jute.CodeOperationTimeout:
			return code.String(), false
		}
		return code.String(), true
	}
	var closed Closed
	if errors.As(err, &closed) {
		return errorClosed, false
	}
	return other, false
}

// description returns what a status says of err beside its [ErrorType]: nothing if there is no more to say.
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

// Closed is the type of errors that say that a client or a recipe is closed.
type Closed string

func (c Closed) Error() string { return string(c) }
