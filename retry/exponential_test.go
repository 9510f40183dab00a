package retry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// highest and lowest are random sources that always return the end of their range.
type highest struct{}

func (highest) Int64N(n int64) int64 { return n - 1 }

type lowest struct{}

func (lowest) Int64N(int64) int64 { return 0 }

func withRandom(p Policy, r intSource) Policy {
	e := p.(exponential)
	e.random = r
	return e
}

// In Java: TestRetryLoop.testExponentialBackoffRetryLimit.
func TestExponentialRetryLimit(t *testing.T) {
	for _, n := range []int{29, 30, 100, math.MaxInt} {
		p := BoundedExponentialBackoff(time.Millisecond, 10*time.Millisecond, n)
		sleeps := drain(t, p.NewBackOff(), 1000)
		if len(sleeps) != 29 {
			t.Errorf("%d retries with maxRetries %d, want 29", len(sleeps), n)
		}
		for i, d := range sleeps {
			if d < time.Millisecond || d > 10*time.Millisecond {
				t.Errorf("sleep %d is %v, want 1ms to 10ms", i, d)
			}
		}
	}
}

// CURATOR-262: a large base must not overflow to a negative sleep.
func TestExponentialLargeBase(t *testing.T) {
	const javaMax = math.MaxInt32 * time.Millisecond
	for _, base := range []time.Duration{time.Minute, 24 * time.Hour, javaMax, math.MaxInt64} {
		for i, d := range drain(t, withRandom(ExponentialBackoff(base, 29), highest{}).NewBackOff(), 100) {
			if d < min(base, javaMax) || d > javaMax {
				t.Errorf("base %v: sleep %d is %v", base, i, d)
			}
		}
		p := BoundedExponentialBackoff(base, math.MaxInt64, 29)
		for i, d := range drain(t, withRandom(p, highest{}).NewBackOff(), 100) {
			if d < base {
				t.Errorf("base %v, no bound: sleep %d is %v", base, i, d)
			}
		}
	}
}

func TestExponentialFormula(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name   string
		policy Policy
		random intSource
		want   []time.Duration
	}{
		{
			"the factor is at least 1",
			ExponentialBackoff(100*ms, 4),
			lowest{},
			[]time.Duration{100 * ms, 100 * ms, 100 * ms, 100 * ms},
		},
		{
			"the factor is below 2^(count+1)",
			ExponentialBackoff(100*ms, 4),
			highest{},
			[]time.Duration{100 * ms, 300 * ms, 700 * ms, 1500 * ms},
		},
		{
			"the bound holds",
			BoundedExponentialBackoff(100*ms, 650*ms, 4),
			highest{},
			[]time.Duration{100 * ms, 300 * ms, 650 * ms, 650 * ms},
		},
		{
			"the bound is met exactly",
			BoundedExponentialBackoff(100*ms, 700*ms, 4),
			highest{},
			[]time.Duration{100 * ms, 300 * ms, 700 * ms, 700 * ms},
		},
		{
			"a bound below base",
			BoundedExponentialBackoff(100*ms, 10*ms, 2),
			lowest{},
			[]time.Duration{10 * ms, 10 * ms},
		},
		{
			"no base, no sleep",
			ExponentialBackoff(0, 3),
			highest{},
			[]time.Duration{0, 0, 0},
		},
		{
			"no retries",
			ExponentialBackoff(100*ms, 0),
			highest{},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := withRandom(tt.policy, tt.random).NewBackOff()
			if diff := cmp.Diff(tt.want, drain(t, b, 100)); diff != "" {
				t.Errorf("sleeps (-want +got):\n%s", diff)
			}
			b.Reset()
			if diff := cmp.Diff(tt.want, drain(t, b, 100)); diff != "" {
				t.Errorf("sleeps after Reset (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExponentialRange draws many schedules: every sleep is a whole multiple of base in its range, and every
// factor of the first ranges occurs.
func TestExponentialRange(t *testing.T) {
	const base = 10 * time.Millisecond
	p := withRandom(ExponentialBackoff(base, 4), rand.New(rand.NewPCG(1, 2)))
	seen := make([]map[time.Duration]bool, 4)
	for i := range seen {
		seen[i] = map[time.Duration]bool{}
	}
	for range 1000 {
		for i, d := range drain(t, p.NewBackOff(), 10) {
			seen[i][d] = true
		}
	}
	for i, got := range seen {
		want := map[time.Duration]bool{}
		for f := range time.Duration(1)<<(i+1) - 1 {
			want[(f+1)*base] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("sleeps before retry %d (-want +got):\n%s", i, diff)
		}
	}
}
