package waitqueue

import (
	"testing"
	"time"
)

func TestReadPauseGrowsToABound(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 1000: 5 * time.Second,
	} {
		if got := ReadPause(failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
}
