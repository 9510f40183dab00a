package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/internal/jute"
)

func TestIsRetryable(t *testing.T) {
	tests := []struct {
		err  error
		want bool
	}{
		{jute.ErrConnectionLoss, true},
		{jute.ErrOperationTimeout, true},
		{zk.ErrConnectionClosed, true},
		{zk.ErrSessionExpired, true},
		{zk.ErrSessionMoved, true},
		{jute.ErrRequestTimeout, true},
		{jute.ErrThrottledOp, true},
		{jute.ErrReconfigInProgress, true},
		{fmt.Errorf("create /a: %w", jute.ErrConnectionLoss), true},
		{jute.ErrUncertain, false},
		{nil, false},
		{zk.ErrNoNode, false},
		{zk.ErrNodeExists, false},
		{zk.ErrNoAuth, false},
		{zk.ErrAuthFailed, false},
		{zk.ErrClosing, false},
		{context.Canceled, false},
		{context.DeadlineExceeded, false},
		{errors.New("something else"), false},
	}
	policies := []Policy{
		ExponentialBackoff(time.Second, 3),
		BoundedExponentialBackoff(time.Second, time.Minute, 3),
		NTimes(3, time.Second),
		OneTime(time.Second),
		UntilElapsed(time.Minute, time.Second),
		Forever(time.Second),
		Func(func() backoff.BackOff { return backoff.NewExponentialBackOff() }),
	}
	for _, tt := range tests {
		if got := IsRetryable(tt.err); got != tt.want {
			t.Errorf("IsRetryable(%v) = %v, want %v", tt.err, got, tt.want)
		}
		for _, p := range policies {
			if got := p.Retryable(tt.err); got != tt.want {
				t.Errorf("%v.Retryable(%v) = %v, want %v", p, tt.err, got, tt.want)
			}
			want := tt.want && !errors.Is(tt.err, zk.ErrSessionExpired)
			if got := SessionFailed(p).Retryable(tt.err); got != want {
				t.Errorf("%v.Retryable(%v) = %v, want %v", SessionFailed(p), tt.err, got, want)
			}
		}
	}
}

// TestSessionFailedKeepsWhatItWraps: it takes retries away, it never adds one.
func TestSessionFailedKeepsWhatItWraps(t *testing.T) {
	p := SessionFailed(onlyMoved{NTimes(2, time.Second)})
	if p.Retryable(jute.ErrConnectionLoss) {
		t.Error("an error that the wrapped policy does not retry is retried")
	}
	if !p.Retryable(zk.ErrSessionMoved) {
		t.Error("an error that the wrapped policy retries is not retried")
	}
	for _, b := range []backoff.BackOff{p.NewBackOff(), p.(SinceStarter).NewBackOffSince(time.Now())} {
		if got, want := drain(t, b, 10), 2; len(got) != want {
			t.Errorf("%d retries, want %d", len(got), want)
		}
	}
}

type onlyMoved struct{ Policy }

func (onlyMoved) Retryable(err error) bool { return errors.Is(err, zk.ErrSessionMoved) }

func TestValidate(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		policy Policy
		valid  bool
	}{
		{ExponentialBackoff(time.Second, 3), true},
		{ExponentialBackoff(0, 0), true},
		{ExponentialBackoff(365*day, 1000), true},
		{ExponentialBackoff(-1, 3), false},
		{ExponentialBackoff(time.Second, -1), false},
		{BoundedExponentialBackoff(time.Second, time.Millisecond, 3), true}, // Java takes it too: always max
		{BoundedExponentialBackoff(time.Second, 0, 3), false},
		{BoundedExponentialBackoff(time.Second, -time.Second, 3), false},
		{BoundedExponentialBackoff(-time.Second, time.Second, 3), false},
		{BoundedExponentialBackoff(time.Second, time.Second, -3), false},
		{NTimes(0, 0), true},
		{NTimes(-1, time.Second), false},
		{NTimes(1, -time.Second), false},
		{OneTime(0), true},
		{OneTime(-1), false},
		{UntilElapsed(0, 0), true},
		{UntilElapsed(-1, 0), false},
		{UntilElapsed(0, -1), false},
		{Forever(time.Millisecond), true},
		{Forever(0), false},
		{Forever(-time.Second), false},
		{Func(func() backoff.BackOff { return &backoff.ZeroBackOff{} }), true},
		{Func(nil), false},
		{SessionFailed(Forever(time.Second)), true},
		{SessionFailed(Forever(0)), false},
		{SessionFailed(onlyMoved{}), true}, // not a Validator
		{SessionFailed(nil), false},
	}
	for _, tt := range tests {
		v, ok := tt.policy.(Validator)
		if !ok {
			t.Errorf("%v is not a Validator", tt.policy)
			continue
		}
		err := v.Validate()
		if tt.valid {
			if err != nil {
				t.Errorf("%v: Validate() = %v", tt.policy, err)
			}
			continue
		}
		if !errors.Is(err, zk.ErrBadArguments) {
			t.Errorf("%v: Validate() = %v, want zk.ErrBadArguments", tt.policy, err)
		}
		// Used all the same, it never retries.
		if got := drain(t, tt.policy.NewBackOff(), 10); len(got) != 0 {
			t.Errorf("%v: sleeps %v, want none", tt.policy, got)
		}
	}
	if SessionFailed(nil).Retryable(jute.ErrConnectionLoss) {
		t.Error("SessionFailed(nil) retries")
	}
}

func TestValidateSaysWhat(t *testing.T) {
	const want = "retry: Forever: sleep 0s is not positive"
	if err := SessionFailed(Forever(0)).(Validator).Validate(); err.Error() != want {
		t.Errorf("Validate() = %q, want %q", err, want)
	}
}

func TestString(t *testing.T) {
	tests := []struct {
		policy Policy
		want   string
	}{
		{ExponentialBackoff(time.Second, 3), "ExponentialBackoff(1s, 3)"},
		{ExponentialBackoff(time.Second, 50), "ExponentialBackoff(1s, 29)"},
		{BoundedExponentialBackoff(time.Second, time.Minute, 3), "BoundedExponentialBackoff(1s, 1m0s, 3)"},
		{NTimes(3, time.Second), "NTimes(3, 1s)"},
		{OneTime(time.Second), "OneTime(1s)"},
		{UntilElapsed(time.Minute, time.Second), "UntilElapsed(1m0s, 1s)"},
		{Forever(time.Second), "Forever(1s)"},
		{Func(nil), "Func"},
		{SessionFailed(Forever(time.Second)), "SessionFailed(Forever(1s))"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(tt.policy); got != tt.want {
			t.Errorf("String() = %q, want %q", got, tt.want)
		}
	}
}

// TestSchedulesAreIndependent: operations count for themselves, also when they use one policy at the same time.
func TestSchedulesAreIndependent(t *testing.T) {
	for _, p := range []Policy{NTimes(5, time.Second), ExponentialBackoff(time.Second, 5)} {
		done := make(chan int)
		for range 8 {
			go func() {
				n := 0
				for b := p.NewBackOff(); b.NextBackOff() != backoff.Stop; {
					n++
				}
				done <- n
			}()
		}
		for range 8 {
			if n := <-done; n != 5 {
				t.Errorf("%v: %d retries, want 5", p, n)
			}
		}
	}
}

// drain returns the sleeps of b until it stops, at most limit of them.
func drain(t *testing.T, b backoff.BackOff, limit int) []time.Duration {
	t.Helper()
	var sleeps []time.Duration
	for len(sleeps) < limit {
		d := b.NextBackOff()
		if d == backoff.Stop {
			if again := b.NextBackOff(); again != backoff.Stop {
				t.Errorf("NextBackOff() after Stop = %v, want Stop", again)
			}
			return sleeps
		}
		if d < 0 {
			t.Fatalf("NextBackOff() = %v, negative", d)
		}
		sleeps = append(sleeps, d)
	}
	return sleeps
}
