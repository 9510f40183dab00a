package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/cmd/curator/internal/connect"
	"github.com/gocurator/curator/framework"
)

// The exit codes of all subcommands. Those above 64 are the numbers of sysexits.h with a similar meaning.
const (
	CodeOK          = 0
	CodeFailed      = 1
	CodeUsage       = 2
	CodeNoNode      = 3
	CodeNotAcquired = 75 // EX_TEMPFAIL: try again later
	CodeLost        = 76
	CodeRefused     = 77 // EX_NOPERM
)

const exitCodes = `Exit codes:
  0   done
  1   failed
  2   wrong use: a flag, an argument or the configuration
  3   there is no such node
  75  not connected, or not acquired, in time
  76  lost: the session, the lock or the leadership ended
  77  refused: by the servers, or because it would not be safe
A subcommand that runs a command has the exit code of that, 128 + n if signal n has ended it.`

// exitError is an error with an exit code of its own. Without an error there is no message.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit returns an error with an exit code.
func exit(code int, err error) error { return &exitError{code: code, err: err} }

// usage marks an error as one of wrong use.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return exit(CodeUsage, err)
}

// Code returns the exit code for the error of a subcommand.
func Code(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return CodeOK
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		return CodeRefused
	case errors.Is(err, connect.ErrNotConnected), errors.Is(err, framework.ErrNotSent):
		return CodeNotAcquired
	case errors.Is(err, zk.ErrNoNode):
		return CodeNoNode
	case errors.Is(err, framework.ErrBadArguments), errors.Is(err, zk.ErrInvalidPath):
		return CodeUsage
	case strings.HasPrefix(err.Error(), "unknown command "): // cobra has no value for it
		return CodeUsage
	}
	return CodeFailed
}

// message returns the line of an error, "" for none.
func message(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return ""
	}
	text := strings.TrimPrefix(err.Error(), "curator: ") // of the library: the line begins with the name already
	return line(strings.ReplaceAll(text, "\n", "; "))
}
