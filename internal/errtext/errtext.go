// Package errtext writes the texts of errors: one prefix at the beginning of each, whatever the error wraps.
package errtext

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// below are the prefixes of the packages that others wrap the errors of.
var below = [...]string{"curator: ", "retry: ", "wire: ", "zk: "}

// Wrap returns an error that wraps err and reads "prefix: what: err". A package's prefix at the beginning of err is
// left out. An empty prefix and an empty format stand for nothing.
func Wrap(err error, prefix, format string, args ...any) error {
	text := Cause(err, prefix)
	if format != "" {
		text = fmt.Sprintf(format, args...) + ": " + text
	}
	if prefix != "" {
		text = prefix + ": " + text
	}
	return &wrapped{text: text, err: err}
}

// Join returns an error that matches both what and cause and reads "what: cause", where cause has no prefix of a
// package. It returns the other if one of them is nil.
func Join(what, cause error) error {
	switch {
	case cause == nil:
		return what
	case what == nil:
		return cause
	}
	prefix, _, _ := strings.Cut(what.Error(), ": ")
	return &joined{text: what.Error() + ": " + Cause(cause, prefix), errs: [2]error{what, cause}}
}

// Sent returns the error of the last try of a write of which an earlier try was sent: err, if that does not match
// notSent. Else the last try was not sent, but the write was. The result says so, and does not match notSent.
func Sent(err, notSent error) error {
	if !errors.Is(err, notSent) {
		return err
	}
	const prefix = "curator: "
	loss := strings.TrimPrefix(errors.Unwrap(notSent).Error(), prefix)
	text := strings.Replace(err.Error(), strings.TrimPrefix(notSent.Error(), prefix), loss, 1)
	return &sent{text: text, err: err, notSent: notSent}
}

// sent has no Unwrap, which would show notSent.
type sent struct {
	text         string
	err, notSent error
}

func (e *sent) Error() string { return e.text }

func (e *sent) Is(target error) bool { return target != e.notSent && errors.Is(e.err, target) }

func (e *sent) As(target any) bool { return errors.As(e.err, target) }

// Cause returns the text of err without the prefix at its beginning, if that is prefix or one of the packages that all
// others stand on.
func Cause(err error, prefix string) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, prefix+": "); ok {
		return rest
	}
	for _, p := range below {
		if rest, ok := strings.CutPrefix(text, p); ok {
			return rest
		}
	}
	return text
}

// Panic returns the text of what a panic was called with.
func Panic(value any) string {
	if err, ok := value.(error); ok {
		return Cause(err, "curator")
	}
	return fmt.Sprint(value)
}

// TooShort returns the error text for a duration above zero and below a millisecond: most likely a
// number of milliseconds without a unit. It returns "" for all others.
func TooShort(d time.Duration) string {
	if d <= 0 || d >= time.Millisecond {
		return ""
	}
	return fmt.Sprintf("%v is below a millisecond: durations are in Go's units, did you mean %d*time.Millisecond?", d, d)
}

// wrapped is an error whose text does not repeat the prefix of what it wraps.
type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text }
func (w *wrapped) Unwrap() error { return w.err }

// joined is wrapped around two errors.
type joined struct {
	text string
	errs [2]error
}

func (j *joined) Error() string   { return j.text }
func (j *joined) Unwrap() []error { return j.errs[:] }
