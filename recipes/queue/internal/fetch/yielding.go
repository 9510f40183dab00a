package fetch

import (
	"math/rand/v2"
	"time"
)

// yielding leaves a new item to a consumer that was recently faster.
type yielding struct {
	isSlower bool      // another consumer was faster since a pause ended with the item still there
	until    time.Time // the end of the pause, zero if there is none
}

const (
	yieldPause       = 10 * time.Millisecond
	yieldRandomPause = 40 * time.Millisecond
)

// lost records that another consumer was faster.
func (y *yielding) lost() { y.isSlower = true }

// isYielding reports whether to wait with the first item. If the item is still there when a pause ends, no other
// consumer was faster.
func (y *yielding) isYielding(now time.Time) bool {
	switch {
	case !y.isSlower:
		return false
	case y.until.IsZero():
		y.until = now.Add(yieldPause + rand.N(yieldRandomPause))
		return true
	case now.Before(y.until):
		return true
	}
	y.isSlower, y.until = false, time.Time{}
	return false
}
