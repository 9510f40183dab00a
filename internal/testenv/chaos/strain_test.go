package chaos

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestStrain(t *testing.T) {
	for _, tt := range []struct {
		request time.Duration
		want    float64
	}{{0, 1}, {usual, 1}, {3 * usual, 3}, {time.Second, mostStrain}} {
		synctest.Test(t, func(t *testing.T) {
			if got := Strain(func() { time.Sleep(tt.request) }); got != tt.want {
				t.Errorf("a request takes %v: %v, want %v", tt.request, got, tt.want)
			}
		})
	}
}
