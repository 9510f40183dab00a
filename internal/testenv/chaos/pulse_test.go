package chaos

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := NewPulse(), time.Now()
		time.Sleep(time.Second)
		p.Stop()
		p.Stop()
		if missed := p.Missed(start, time.Now()); missed > beat {
			t.Errorf("missed %v, though nothing stood still", missed)
		}
		end := p.last
		p.beat(end.Add(100 * time.Millisecond))
		p.beat(end.Add(105 * time.Millisecond))
		time.Sleep(150 * time.Millisecond) // without a beat since 105 ms
		for _, tt := range []struct{ from, to, want time.Duration }{
			{-time.Second, 0, 0},
			{-time.Second, 100, 100},
			{20, 50, 30},
			{50, 105, 50},
			{50, 125, 70},
		} {
			if got := p.Missed(end.Add(tt.from*time.Millisecond),
				end.Add(tt.to*time.Millisecond)); got != tt.want*time.Millisecond {
				t.Errorf("from %d to %d ms: %v, want %d ms", tt.from, tt.to, got, tt.want)
			}
		}
	})
}
