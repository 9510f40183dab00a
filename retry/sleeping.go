package retry

import (
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// NTimes returns a policy that tries up to n times more and sleeps before each of them. NTimes(0, 0) never
// retries.
//
// In Java: RetryNTimes.
func NTimes(n int, sleep time.Duration) Policy { return nTimes{n: n, sleep: sleep} }

// OneTime returns a policy that tries once more, after sleep.
//
// In Java: RetryOneTime.
func OneTime(sleep time.Duration) Policy { return nTimes{n: 1, sleep: sleep, one: true} }

type nTimes struct {
	n     int
	sleep time.Duration
	one   bool // made by OneTime: part of the name only
}

func (p nTimes) NewBackOff() backoff.BackOff {
	if p.Validate() != nil {
		return never
	}
	return backoff.WithMaxRetries(backoff.NewConstantBackOff(p.sleep), uint64(p.n))
}

func (p nTimes) Retryable(err error) bool { return IsRetryable(err) }

func (p nTimes) Validate() error {
	switch {
	case p.n < 0:
		return bad(p.name(), "number of retries %d is negative", p.n)
	case p.sleep < 0:
		return bad(p.name(), "sleep %v is negative", p.sleep)
	}
	return checkUnits(p.name(), argument{"sleep", p.sleep})
}

func (p nTimes) name() string {
	if p.one {
		return "OneTime"
	}
	return "NTimes"
}

func (p nTimes) String() string {
	if p.one {
		return fmt.Sprintf("%s(%v)", p.name(), p.sleep)
	}
	return fmt.Sprintf("%s(%d, %v)", p.name(), p.n, p.sleep)
}

// UntilElapsed returns a policy that tries again after sleep until max has passed since the operation began, its
// attempts included. The last attempt may therefore begin up to one sleep after max.
//
// In Java: RetryUntilElapsed, which makes the same attempts but looks at the clock after it has slept: when the time is
// over it still sleeps once more. This one gives up at once.
func UntilElapsed(max, sleep time.Duration) Policy { return untilElapsed{max: max, sleep: sleep} }

type untilElapsed struct{ max, sleep time.Duration }

func (p untilElapsed) NewBackOff() backoff.BackOff { return p.NewBackOffSince(time.Now()) }

func (p untilElapsed) NewBackOffSince(start time.Time) backoff.BackOff {
	if p.Validate() != nil {
		return never
	}
	return &elapsedSchedule{policy: p, start: start}
}

func (p untilElapsed) Retryable(err error) bool { return IsRetryable(err) }

func (p untilElapsed) Validate() error {
	switch {
	case p.max < 0:
		return bad("UntilElapsed", "maximum time %v is negative", p.max)
	case p.sleep < 0:
		return bad("UntilElapsed", "sleep %v is negative", p.sleep)
	}
	return checkUnits("UntilElapsed", argument{"maximum time", p.max}, argument{"sleep", p.sleep})
}

func (p untilElapsed) String() string { return fmt.Sprintf("UntilElapsed(%v, %v)", p.max, p.sleep) }

type elapsedSchedule struct {
	policy untilElapsed
	start  time.Time
}

func (s *elapsedSchedule) NextBackOff() time.Duration {
	if time.Since(s.start) >= s.policy.max {
		return backoff.Stop
	}
	return s.policy.sleep
}

func (s *elapsedSchedule) Reset() { s.start = time.Now() }

// Forever returns a policy that tries again after sleep, without end. The sleep has to be positive. An operation
// ends only with its context or with the client, so give it a context that ends.
//
// In Java: RetryForever.
func Forever(sleep time.Duration) Policy { return forever{sleep: sleep} }

type forever struct{ sleep time.Duration }

func (p forever) NewBackOff() backoff.BackOff {
	if p.Validate() != nil {
		return never
	}
	return backoff.NewConstantBackOff(p.sleep)
}

func (p forever) Retryable(err error) bool { return IsRetryable(err) }

func (p forever) Validate() error {
	if p.sleep <= 0 {
		return bad("Forever", "sleep %v is not positive", p.sleep)
	}
	return checkUnits("Forever", argument{"sleep", p.sleep})
}

func (p forever) String() string { return fmt.Sprintf("Forever(%v)", p.sleep) }
