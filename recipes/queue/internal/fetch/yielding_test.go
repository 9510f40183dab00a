package fetch

import (
	"testing"
	"time"
)

func TestYieldingEndsOnceAndIsRandom(t *testing.T) {
	t.Parallel()
	var y yielding
	now := time.Now()
	if y.isYielding(now) {
		t.Error("it yields to nobody")
	}
	pauses := make(map[time.Duration]bool)
	for range 100 {
		y.lost()
		if !y.isYielding(now) {
			t.Fatal("it does not yield to a faster one")
		}
		pause := y.until.Sub(now)
		if pause < 10*time.Millisecond || pause >= 50*time.Millisecond {
			t.Errorf("a pause of %v", pause)
		}
		pauses[pause] = true
		if now = y.until.Add(-1); !y.isYielding(now) {
			t.Errorf("the pause ends early")
		}
		if now = now.Add(1); y.isYielding(now) {
			t.Error("the pause does not end")
		}
		if y.isYielding(now) {
			t.Error("a second pause")
		}
	}
	if len(pauses) < 10 {
		t.Errorf("%d different pauses of 100", len(pauses))
	}
}
