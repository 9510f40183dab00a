package retry

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/errtext"
	"github.com/gocurator/curator/internal/jute"
)

// Policy decides which failures of an operation are tried again, and when. It is an immutable value: one policy
// serves every operation of a client, from any number of goroutines.
//
// In Java: RetryPolicy.
type Policy interface {
	// NewBackOff returns the schedule of one operation, which starts now. Each failure of the operation asks
	// NextBackOff once: it returns how long to wait before the next attempt, or [backoff.Stop] to give up. A
	// schedule counts, so it belongs to one operation and is not safe for concurrent use.
	//
	// A client asks for it at the first failure, so that success costs nothing; see [SinceStarter].
	NewBackOff() backoff.BackOff
	// Retryable reports whether an operation that failed with err may be tried again. An error that is not
	// retryable ends the operation without asking the schedule.
	Retryable(err error) bool
}

// SinceStarter is implemented by policies that count the time of an operation, its first attempt included. A client
// prefers it to NewBackOff.
type SinceStarter interface {
	// NewBackOffSince is NewBackOff for an operation that began at start.
	NewBackOffSince(start time.Time) backoff.BackOff
}

// Validator is implemented by policies whose arguments can be wrong. framework.New returns the error, which
// matches [zk.ErrBadArguments].
type Validator interface {
	// Validate returns nil if the policy can be used, or else what is wrong with it.
	Validate() error
}

// IsRetryable reports whether err says nothing about the request itself, so that the same request may succeed
// later: connection loss, operation or request timeout, session moved, session expired, an operation that the server
// has throttled, a reconfiguration during another one. It is the rule of every policy of this package except
// [SessionFailed].
//
// Connection loss and the timeouts leave open whether the server has carried the request out. Not retryable is
// framework.ErrUncertain, the loss of the answer to a write that must not take effect twice. In Java:
// RetryPolicy.allowRetry.
func IsRetryable(err error) bool {
	return err != nil && !errors.Is(err, jute.ErrUncertain) && jute.IsPassing(err)
}

// Func makes a policy of a function that returns a new schedule at every call. It retries what [IsRetryable]
// says:
//
//	retry.Func(func() backoff.BackOff { return backoff.NewExponentialBackOff() })
type Func func() backoff.BackOff

// NewBackOff calls f.
func (f Func) NewBackOff() backoff.BackOff {
	if f == nil {
		return never
	}
	return f()
}

// Retryable is [IsRetryable].
func (f Func) Retryable(err error) bool { return IsRetryable(err) }

// Validate returns an error if f is nil.
func (f Func) Validate() error {
	if f == nil {
		return bad("Func", "the function is nil")
	}
	return nil
}

// String names the policy for logs.
func (f Func) String() string { return "Func" }

// SessionFailed returns p without the retry after an expired session: an operation that makes sense only in the
// session it began in fails with [zk.ErrSessionExpired] instead of being repeated in the next one.
//
// In Java: SessionFailedRetryPolicy.
func SessionFailed(p Policy) Policy { return sessionFailed{policy: p} }

type sessionFailed struct{ policy Policy }

func (s sessionFailed) NewBackOff() backoff.BackOff {
	if s.policy == nil {
		return never
	}
	return s.policy.NewBackOff()
}

func (s sessionFailed) NewBackOffSince(start time.Time) backoff.BackOff {
	if p, ok := s.policy.(SinceStarter); ok {
		return p.NewBackOffSince(start)
	}
	return s.NewBackOff()
}

func (s sessionFailed) Retryable(err error) bool {
	return s.policy != nil && !errors.Is(err, zk.ErrSessionExpired) && s.policy.Retryable(err)
}

func (s sessionFailed) Validate() error {
	if s.policy == nil {
		return bad("SessionFailed", "the policy is nil")
	}
	if v, ok := s.policy.(Validator); ok {
		return v.Validate()
	}
	return nil
}

func (s sessionFailed) String() string { return fmt.Sprintf("SessionFailed(%v)", s.policy) }

// never is the schedule of a policy that cannot be used. It has no state and is shared.
var never backoff.BackOff = &backoff.StopBackOff{}

// policyError is the error of a policy's invalid arguments.
type policyError string

func (e policyError) Error() string { return "retry: " + string(e) }
func (policyError) Unwrap() error   { return zk.ErrBadArguments }

func bad(policy, format string, args ...any) error {
	return policyError(policy + ": " + fmt.Sprintf(format, args...))
}

// argument is a duration that a policy was given, and what it is.
type argument struct {
	what  string
	value time.Duration
}

// checkUnits returns an error for the first argument that is above 0 and below a millisecond: Java's policies take
// milliseconds, and one of their numbers without a unit is that many nanoseconds here.
func checkUnits(policy string, args ...argument) error {
	for _, a := range args {
		if wrong := errtext.TooShort(a.value); wrong != "" {
			return bad(policy, "%s %s", a.what, wrong)
		}
	}
	return nil
}
