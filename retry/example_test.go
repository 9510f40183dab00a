package retry_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/retry"
)

// run shows what a client does with a policy: one schedule per operation, asked once for every failure.
func run(policy retry.Policy, operation func() error) error {
	schedule := policy.NewBackOff()
	for {
		err := operation()
		if err == nil || !policy.Retryable(err) {
			return err
		}
		wait := schedule.NextBackOff()
		if wait == backoff.Stop {
			return err
		}
		time.Sleep(wait) // a client waits for its context too
	}
}

// failing returns an operation that fails with errs, one after the other, and then succeeds.
func failing(errs ...error) func() error {
	return func() error {
		if len(errs) == 0 {
			fmt.Println("attempt: done")
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		fmt.Println("attempt:", err)
		return err
	}
}

func ExampleNTimes() {
	policy := retry.NTimes(3, time.Millisecond)
	err := run(policy, failing(zk.ErrConnectionClosed, zk.ErrSessionMoved))
	fmt.Println(err)
	// Output:
	// attempt: zk: connection closed
	// attempt: zk: session moved to another server, so operation is ignored
	// attempt: done
	// <nil>
}

// Errors about the request itself are not retried, by no policy.
func ExampleIsRetryable() {
	fmt.Println(retry.IsRetryable(zk.ErrConnectionClosed))
	fmt.Println(retry.IsRetryable(fmt.Errorf("create /a: %w", zk.ErrSessionExpired)))
	fmt.Println(retry.IsRetryable(zk.ErrNoNode))
	// Output:
	// true
	// true
	// false
}

// An operation that makes sense only in the session it began in.
func ExampleSessionFailed() {
	policy := retry.SessionFailed(retry.NTimes(3, time.Millisecond))
	err := run(policy, failing(zk.ErrConnectionClosed, zk.ErrSessionExpired))
	fmt.Println(errors.Is(err, zk.ErrSessionExpired))
	// Output:
	// attempt: zk: connection closed
	// attempt: zk: session has been expired by the server
	// true
}

// Any schedule of cenkalti/backoff becomes a policy in one line.
func ExampleFunc() {
	policy := retry.Func(func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(100*time.Millisecond),
			backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0),
			backoff.WithMaxInterval(300*time.Millisecond),
		)
	})
	schedule := policy.NewBackOff()
	for range 4 {
		fmt.Println(schedule.NextBackOff())
	}
	// Output:
	// 100ms
	// 200ms
	// 300ms
	// 300ms
}

// patient is a policy of its own kind: it also waits for a server that refuses the session's credentials.
type patient struct{ retry.Policy }

func (p patient) Retryable(err error) bool {
	return errors.Is(err, zk.ErrAuthFailed) || p.Policy.Retryable(err)
}

// A type around another policy changes what is retried and keeps the schedule.
func ExamplePolicy() {
	policy := patient{retry.NTimes(2, time.Millisecond)}
	err := run(policy, failing(zk.ErrAuthFailed))
	fmt.Println(err)
	// Output:
	// attempt: zk: client authentication failed
	// attempt: done
	// <nil>
}
