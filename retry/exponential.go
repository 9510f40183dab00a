package retry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// maxExponentialRetries is Java's limit of maxRetries: the factor 2^(count+1) has to fit in 31 bits.
	maxExponentialRetries = 29
	// maxExponentialSleep is Java's largest sleep, about 24.8 days.
	maxExponentialSleep = math.MaxInt32 * time.Millisecond
)

// ExponentialBackoff returns a policy that tries up to maxRetries times more, and sleeps before each of them for
// base times a random factor that doubles its range: 1 before the first retry, 1 to 3 before the second, 1 to 7
// before the third, and so on. As in Java there are never more than 29 retries, and no sleep is longer than 2³¹−1
// milliseconds; [BoundedExponentialBackoff] has a limit of your choice. A base between 0 and a millisecond is an error.
//
// In Java: ExponentialBackoffRetry.
func ExponentialBackoff(base time.Duration, maxRetries int) Policy {
	return exponential{base: base, max: maxExponentialSleep, maxRetries: min(maxRetries, maxExponentialRetries)}
}

// BoundedExponentialBackoff is [ExponentialBackoff] with no sleep longer than max.
//
// In Java: BoundedExponentialBackoffRetry.
func BoundedExponentialBackoff(base, max time.Duration, maxRetries int) Policy {
	return exponential{
		base: base, max: max, maxRetries: min(maxRetries, maxExponentialRetries),
		bounded: true,
	}
}

type exponential struct {
	base, max  time.Duration
	maxRetries int
	bounded    bool      // by the caller: part of the name only
	random     intSource // nil means the global source; tests have their own
}

type intSource interface {
	Int64N(n int64) int64 // in [0, n)
}

func (e exponential) NewBackOff() backoff.BackOff {
	if e.Validate() != nil {
		return never
	}
	return &exponentialSchedule{policy: e}
}

func (e exponential) Retryable(err error) bool { return IsRetryable(err) }

func (e exponential) Validate() error {
	switch {
	case e.base < 0:
		return bad(e.name(), "base sleep %v is negative", e.base)
	case e.max <= 0:
		return bad(e.name(), "maximum sleep %v is not positive", e.max)
	case e.maxRetries < 0:
		return bad(e.name(), "number of retries %d is negative", e.maxRetries)
	}
	return checkUnits(e.name(), argument{"base sleep", e.base}, argument{"maximum sleep", e.max})
}

func (e exponential) name() string {
	if e.bounded {
		return "BoundedExponentialBackoff"
	}
	return "ExponentialBackoff"
}

func (e exponential) String() string {
	if e.bounded {
		return fmt.Sprintf("%s(%v, %v, %d)", e.name(), e.base, e.max, e.maxRetries)
	}
	return fmt.Sprintf("%s(%v, %d)", e.name(), e.base, e.maxRetries)
}

// sleep returns the wait before retry number count, counted from 0.
func (e exponential) sleep(count int) time.Duration {
	int64N := rand.Int64N
	if e.random != nil {
		int64N = e.random.Int64N
	}
	factor := time.Duration(max(1, int64N(int64(1)<<(count+1))))
	if e.base > e.max/factor { // base*factor is over the limit, and may be over 64 bits too
		return e.max
	}
	return e.base * factor
}

type exponentialSchedule struct {
	policy exponential
	count  int // of retries so far
}

func (s *exponentialSchedule) NextBackOff() time.Duration {
	if s.count >= s.policy.maxRetries {
		return backoff.Stop
	}
	d := s.policy.sleep(s.count)
	s.count++
	return d
}

func (s *exponentialSchedule) Reset() { s.count = 0 }
