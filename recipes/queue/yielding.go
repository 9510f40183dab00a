package queue

import (
	"math/rand/v2"
	"time"
)

// yielding leaves a new item to a consumer that was recently faster.
type yielding struct {
	losses int           // losses to faster consumers since a pause ended with the item still there
	until  time.Time     // the end of the pause, zero if there is none
	others time.Duration // average time that others need to take an item
}

const (
	yieldPause       = 10 * time.Millisecond
	yieldRandomPause = 40 * time.Millisecond
	maxLossesCounted = 24
	maxTaking        = 250 * time.Millisecond
)

// lost records that another consumer was faster.
func (y *yielding) lost() { y.losses = min(y.losses+1, maxLossesCounted) }

// taken records how long another consumer needed to take an item.
func (y *yielding) taken(after time.Duration) { y.others += (min(after, maxTaking) - y.others) / 4 }

// isYielding reports whether to wait with the first item. If the item is still there when a pause ends, no other
// consumer was faster.
func (y *yielding) isYielding(now time.Time) bool {
	switch {
	case y.losses == 0:
		return false
	case y.until.IsZero():
		most := yieldPause + y.others + rand.N(yieldRandomPause+2*y.others)
		y.until = now.Add(most * time.Duration(1+y.losses/8))
		return true
	case now.Before(y.until):
		return true
	}
	y.losses, y.until = 0, time.Time{}
	return false
}
