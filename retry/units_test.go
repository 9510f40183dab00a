package retry

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Java's arguments are milliseconds: as they stand they are nanoseconds here.
func TestValidateRefusesMillisecondsWithoutAUnit(t *testing.T) {
	const hint = "below a millisecond: durations are in Go's units, did you mean "
	tests := []struct {
		policy Policy
		says   string
	}{
		{ExponentialBackoff(1000, 3), "retry: ExponentialBackoff: base sleep 1µs is " + hint + "1000*time.Millisecond?"},
		{ExponentialBackoff(1, 0), "base sleep 1ns is " + hint + "1*time.Millisecond?"},
		{ExponentialBackoff(time.Millisecond-1, 3), "base sleep"},
		{BoundedExponentialBackoff(1000, time.Minute, 3), "base sleep 1µs is " + hint + "1000*time.Millisecond?"},
		{BoundedExponentialBackoff(time.Second, 30_000, 3), "maximum sleep 30µs is " + hint + "30000*time.Millisecond?"},
		{BoundedExponentialBackoff(1000, 3, 5000), "base sleep"}, // of ExponentialBackoffRetry(base, n, max)
		{NTimes(3, 100), "NTimes: sleep 100ns is " + hint + "100*time.Millisecond?"},
		{OneTime(100), "OneTime: sleep 100ns is " + hint + "100*time.Millisecond?"},
		{UntilElapsed(10_000, time.Second), "UntilElapsed: maximum time 10µs is " + hint + "10000*time.Millisecond?"},
		{UntilElapsed(time.Minute, 100), "UntilElapsed: sleep 100ns is " + hint + "100*time.Millisecond?"},
		{Forever(100), "Forever: sleep 100ns is " + hint + "100*time.Millisecond?"},
		{SessionFailed(Forever(100)), "Forever: sleep 100ns is " + hint + "100*time.Millisecond?"},
	}
	for _, tt := range tests {
		err := tt.policy.(Validator).Validate()
		if !errors.Is(err, zk.ErrBadArguments) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: Validate() = %v, want zk.ErrBadArguments with %q", tt.policy, err, tt.says)
		}
		if got := drain(t, tt.policy.NewBackOff(), 10); len(got) != 0 {
			t.Errorf("%v: sleeps %v, want none", tt.policy, got)
		}
	}
}

func TestValidateTakesAMillisecondAndNothing(t *testing.T) {
	for _, policy := range []Policy{
		ExponentialBackoff(0, 3), ExponentialBackoff(time.Millisecond, 3),
		BoundedExponentialBackoff(0, time.Millisecond, 3),
		NTimes(3, 0), NTimes(3, time.Millisecond), OneTime(0), OneTime(time.Millisecond),
		UntilElapsed(0, 0), UntilElapsed(time.Millisecond, 0), UntilElapsed(time.Second, time.Millisecond),
		Forever(time.Millisecond),
	} {
		if err := policy.(Validator).Validate(); err != nil {
			t.Errorf("%v: Validate() = %v", policy, err)
		}
	}
}
