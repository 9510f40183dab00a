package retry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
)

func TestNTimes(t *testing.T) {
	const s = time.Second
	tests := []struct {
		policy Policy
		want   []time.Duration
	}{
		{NTimes(0, 0), nil},
		{NTimes(0, s), nil},
		{NTimes(3, 0), []time.Duration{0, 0, 0}},
		{NTimes(3, 2*s), []time.Duration{2 * s, 2 * s, 2 * s}},
		{OneTime(s), []time.Duration{s}},
	}
	for _, tt := range tests {
		b := tt.policy.NewBackOff()
		if diff := cmp.Diff(tt.want, drain(t, b, 100)); diff != "" {
			t.Errorf("%v: sleeps (-want +got):\n%s", tt.policy, diff)
		}
		b.Reset()
		if diff := cmp.Diff(tt.want, drain(t, b, 100)); diff != "" {
			t.Errorf("%v: sleeps after Reset (-want +got):\n%s", tt.policy, diff)
		}
	}
}

// In Java: TestRetryLoop.testRetryForever.
func TestForever(t *testing.T) {
	b := Forever(3 * time.Second).NewBackOff()
	for i, d := range drain(t, b, 10_000) {
		if d != 3*time.Second {
			t.Fatalf("sleep %d is %v, want 3s", i, d)
		}
	}
	if d := b.NextBackOff(); d == backoff.Stop {
		t.Error("gave up")
	}
}

func TestUntilElapsed(t *testing.T) {
	tests := []struct {
		name       string
		max, sleep time.Duration
		attempt    time.Duration // how long each attempt of the operation takes
		retries    int
		elapsed    time.Duration // until it gives up
	}{
		{"attempts take no time", 10 * time.Second, time.Second, 0, 10, 10 * time.Second},
		{"attempts count", 10 * time.Second, time.Second, time.Second, 5, 11 * time.Second},
		{"the last sleep is not cut", 10 * time.Second, 4 * time.Second, 0, 3, 12 * time.Second},
		{"no sleep after the end", 10 * time.Second, time.Second, 20 * time.Second, 0, 20 * time.Second},
		{"the end itself is over", 10 * time.Second, time.Second, 10 * time.Second, 0, 10 * time.Second},
		{"no time at all", 0, time.Second, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := UntilElapsed(tt.max, tt.sleep)
				time.Sleep(time.Hour) // the policy has no clock, its schedules have
				start := time.Now()
				b := p.NewBackOff()
				for range 2 {
					retries := 0
					for {
						time.Sleep(tt.attempt)
						d := b.NextBackOff()
						if d == backoff.Stop {
							break
						}
						time.Sleep(d)
						retries++
					}
					if elapsed := time.Since(start); retries != tt.retries || elapsed != tt.elapsed {
						t.Errorf("%d retries in %v, want %d in %v", retries, elapsed, tt.retries, tt.elapsed)
					}
					start = time.Now()
					b.Reset()
				}
			})
		})
	}
}

// TestUntilElapsedSince: a schedule that is made at the first failure counts what came before.
func TestUntilElapsedSince(t *testing.T) {
	for _, p := range []Policy{
		UntilElapsed(10*time.Second, time.Second),
		SessionFailed(UntilElapsed(10*time.Second, time.Second)),
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			time.Sleep(8 * time.Second)
			b := p.(SinceStarter).NewBackOffSince(start)
			for _, want := range []time.Duration{time.Second, time.Second, backoff.Stop} {
				if got := b.NextBackOff(); got != want {
					t.Errorf("%v: after %v: NextBackOff() = %v, want %v", p, time.Since(start), got, want)
				}
				time.Sleep(time.Second)
			}
		})
	}
}
