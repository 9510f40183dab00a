package chaos_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocurator/curator/internal/testenv/chaos"
)

func TestDisturbInjectsFaultsEquallyOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := chaos.New(t)
		times := make([]int, 3)
		var faults []chaos.Fault
		var undone atomic.Int32
		for i := range times {
			faults = append(faults, func(d *chaos.Disturbance) string {
				times[i]++
				d.After(time.Hour, "undone", func() { undone.Add(1) })
				return "done"
			})
		}
		start := time.Now()
		n := s.Disturb(t.Context(), chaos.Pace{Least: time.Second, Most: 2 * time.Second},
			func(n int) bool { return n >= 30 }, faults...)
		if took := time.Since(start); took < 30*time.Second || took > 60*time.Second {
			t.Errorf("it took %v", took)
		}
		if n != 30 || times[0] != 10 || times[1] != 10 || times[2] != 10 || undone.Load() != 30 {
			t.Errorf("%d faults: %d, undone %d", n, times, undone.Load())
		}
	})
}

func TestDisturbEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := chaos.New(t).Disturb(ctx, chaos.Pace{Least: time.Second, Most: time.Second},
			func(int) bool { return false }, func(d *chaos.Disturbance) string {
				d.Wait(time.Second)
				return "" // nothing has happened
			})
		if n != 0 {
			t.Errorf("%d faults, though no client was disturbed", n)
		}
		if ctx.Err() == nil {
			t.Error("it has ended before")
		}
	})
}
