// Package retry decides which failed operations are tried again, and when.
//
// A [Policy] is an immutable value, given to the client once and safe for concurrent use. It makes one schedule
// per operation, a [backoff.BackOff], because those count and must not be shared:
//
//	client, err := framework.New("localhost:2181",
//		framework.WithRetryPolicy(retry.ExponentialBackoff(time.Second, 3)))
//
// The policies are those of Java Curator with their formulas, durations in place of milliseconds. A policy of
// your own is a type with the two methods of [Policy], or in one line a [Func] around any schedule of
// cenkalti/backoff.
//
// # Waiting
//
// A schedule only says how long to wait; it never sleeps. The caller of the operation sleeps, and ends the wait
// when the context of the operation ends or the client closes.
//
// # Errors
//
// Only failures that say nothing about the request itself are tried again, see [IsRetryable]. Arguments that make
// no sense are reported when the policy is used: the policies of this package are [Validator] values, and
// framework.New returns their error. A policy that is used in spite of it never retries. Such arguments are a negative
// sleep and one between 0 and a millisecond: ExponentialBackoff(1000, 3), with Java's milliseconds, is a base of 1 µs.
//
// # Coming from Java Curator
//
//	Java                                                 here
//	RetryPolicy                                          [Policy]
//	RetryPolicy.allowRetry(Throwable)                    [Policy].Retryable
//	RetryPolicy.allowRetry(count, elapsed, sleeper)      [Policy].NewBackOff, then NextBackOff for every failure
//	ExponentialBackoffRetry(base, n)                     [ExponentialBackoff](base, n)
//	ExponentialBackoffRetry(base, n, max)                [BoundedExponentialBackoff](base, max, n)
//	BoundedExponentialBackoffRetry(base, max, n)         [BoundedExponentialBackoff](base, max, n)
//	RetryNTimes(n, sleep)                                [NTimes](n, sleep)
//	RetryOneTime(sleep)                                  [OneTime](sleep)
//	RetryUntilElapsed(max, sleep)                        [UntilElapsed](max, sleep)
//	RetryForever(sleep)                                  [Forever](sleep)
//	SessionFailedRetryPolicy(p)                          [SessionFailed](p)
//	RetrySleeper                                         none: contexts end a wait
package retry
