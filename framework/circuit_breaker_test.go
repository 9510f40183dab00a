package framework

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/dispatch"
	"github.com/gocurator/curator/retry"
)

// In Java: TestCircuitBreaker and TestCircuitBreakingConnectionStateListener; C-533, C-505.
func TestCircuitBreaker(t *testing.T) {
	three := retry.NTimes(3, time.Second)
	type at struct {
		ms    int
		state ConnectionState
	}
	tests := []struct {
		name     string
		policy   retry.Policy
		recorded []at
		want     []at
	}{
		{"closed: all passes", three, []at{{0, Connected}, {1, ReadOnly}}, []at{{0, Connected}, {1, ReadOnly}}},
		{
			"short outage", three,
			[]at{{0, Suspended}, {500, Reconnected}},
			[]at{{0, Suspended}, {1000, Reconnected}},
		},
		{
			"connection without a quorum", three,
			[]at{{0, Suspended}, {500, ReadOnly}},
			[]at{{0, Suspended}, {1000, ReadOnly}},
		},
		{
			"flapping", three,
			[]at{{0, Suspended}, {100, Reconnected}, {200, Suspended}, {300, Reconnected}},
			[]at{{0, Suspended}, {1000, Reconnected}},
		},
		{
			"down at the end of a pause", three,
			[]at{{0, Suspended}, {100, Reconnected}, {900, Suspended}, {1100, Reconnected}},
			[]at{{0, Suspended}, {2000, Reconnected}},
		},
		{
			"down until the last pause", three,
			[]at{{0, Suspended}, {5000, Reconnected}},
			[]at{{0, Suspended}, {5000, Reconnected}},
		},
		{
			"loss while open", three,
			[]at{{0, Suspended}, {500, Lost}, {600, Reconnected}},
			[]at{{0, Suspended}, {500, Lost}, {1000, Reconnected}},
		},
		{
			"a second loss while open", three,
			[]at{{0, Suspended}, {500, Lost}, {600, Reconnected}, {700, Lost}, {800, Reconnected}},
			[]at{{0, Suspended}, {500, Lost}, {1000, Reconnected}},
		},
		{
			"lost until the last pause", three,
			[]at{{0, Suspended}, {500, Lost}, {5000, Reconnected}},
			[]at{{0, Suspended}, {500, Lost}, {5000, Reconnected}},
		},
		{
			"suspended again after the loss", three,
			[]at{{0, Suspended}, {500, Lost}, {600, Reconnected}, {700, Suspended}},
			[]at{{0, Suspended}, {500, Lost}, {3000, Suspended}},
		},
		{
			"opened by a loss", three,
			[]at{{0, Lost}, {100, Reconnected}, {200, Lost}, {300, Reconnected}},
			[]at{{0, Lost}, {1000, Reconnected}},
		},
		{
			"opens again", three,
			[]at{{0, Suspended}, {100, Reconnected}, {2000, Suspended}, {2100, Reconnected}},
			[]at{{0, Suspended}, {1000, Reconnected}, {2000, Suspended}, {3000, Reconnected}},
		},
		{
			"a policy without a pause", retry.NTimes(0, 0),
			[]at{{0, Suspended}, {1, Reconnected}, {2, Suspended}, {3, Lost}},
			[]at{{0, Suspended}, {1, Reconnected}, {2, Suspended}, {3, Lost}},
		},
		{
			"a policy of one pause", retry.OneTime(time.Second),
			[]at{{0, Suspended}, {100, Reconnected}, {900, Suspended}, {1500, Reconnected}},
			[]at{{0, Suspended}, {1500, Reconnected}},
		},
		{
			"down for long", retry.Forever(time.Second),
			[]at{{0, Suspended}, {100, Lost}, {60_500, Reconnected}},
			[]at{{0, Suspended}, {100, Lost}, {61_000, Reconnected}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				queue := dispatch.Start()
				var got []at
				b := &circuitBreaker{
					policy: tt.policy,
					pass: func(s ConnectionState) {
						got = append(got, at{int(time.Since(start).Milliseconds()), s})
					},
					queue: func(fn func()) { queue.Push(dispatch.Func(fn)) },
				}
				for _, recorded := range tt.recorded {
					time.Sleep(time.Duration(recorded.ms)*time.Millisecond - time.Since(start))
					b.queue(func() { b.stateChanged(recorded.state) })
					synctest.Wait()
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				b.stop()
				if !queue.Close(time.Second) {
					t.Error("the queue is not empty")
				}
				if diff := cmp.Diff(fmt.Sprint(tt.want), fmt.Sprint(got)); diff != "" {
					t.Errorf("passed on (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestCircuitBreakerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, open := range []bool{false, true} {
			passed := 0
			b := &circuitBreaker{
				policy: retry.Forever(time.Second),
				pass:   func(ConnectionState) { passed++ },
				queue:  func(fn func()) { fn() },
			}
			if open {
				b.stateChanged(Suspended)
				b.stateChanged(Reconnected)
			}
			b.stop()
			time.Sleep(time.Minute)
			if want := map[bool]int{false: 0, true: 1}[open]; passed != want {
				t.Errorf("open %v: passed %d states on, want %d", open, passed, want)
			}
		}
	})
}
