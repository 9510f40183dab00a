// Package usercode calls code of the program. A panic of that code becomes an error, and the end of its goroutine ends
// no loop of the library.
package usercode

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/gocurator/curator/internal/errtext"
)

// Panic is a panic of code of the program.
type Panic struct {
	text  string
	stack string
}

// Error returns "curator: panic in …: …", and the stack in the lines below.
func (p *Panic) Error() string { return p.text + "\n" + p.stack }

// newPanic returns a panic with value. where names the code.
func newPanic(where string, value any) *Panic {
	return &Panic{
		text:  fmt.Sprintf("curator: panic in %s: %s", where, errtext.Panic(value)),
		stack: string(debug.Stack()),
	}
}

// WithoutStack returns the text of err without the stack of a panic, which differs from one panic to the next.
func WithoutStack(err error) string {
	text := err.Error()
	if p := (*Panic)(nil); errors.As(err, &p) {
		return strings.Replace(text, "\n"+p.stack, "", 1)
	}
	return text
}

// Exited returns the error of code that has ended its goroutine with runtime.Goexit, as a failed test does.
func Exited(where string) error { return fmt.Errorf("curator: %s has ended its goroutine", where) }

// Call calls fn and returns its panic as an error.
func Call(where string, fn func()) (err error) {
	defer Catch(where, &err)
	fn()
	return nil
}

// Catch is deferred around a call of code of the program. It assigns a panic to err, unless err is nil.
func Catch(where string, err *error) {
	if value := recover(); value != nil && err != nil {
		*err = newPanic(where, value)
	}
}

// Report is deferred around a call of code of the program. It passes a panic to report, unless that is nil.
func Report(where string, report func(where string, err error)) {
	if value := recover(); value != nil && report != nil {
		report(where, newPanic(where, value))
	}
}

// Loop calls step until it returns false. If a step ends its goroutine, the loop goes on in another one that start
// starts.
func Loop(start func(func()), step func() (again bool)) {
	over := false
	defer func() {
		if !over {
			start(func() { Loop(start, step) })
		}
	}()
	for step() {
	}
	over = true
}

// Go starts a goroutine. It is a start for Loop.
func Go(fn func()) { go fn() }
